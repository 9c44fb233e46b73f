//go:build gomysqlserver

package conformance_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/go-mysql-server/server"
	gmssql "github.com/dolthub/go-mysql-server/sql"
	"github.com/sirupsen/logrus"

	"github.com/sqlbulkhead/sqlbulkhead/conformance"
)

// The server logs every statement that fails.
func init() { logrus.SetOutput(io.Discard) }

// (The build tag, which make conformance sets, is for those who wait: to compile the server takes longer than to run all
// else here.)
//
// go-mysql-server speaks MySQL's protocol and names itself MySQL. It stands for MySQL where none is to be had: for what
// goes over the wire, not for what MySQL enforces.
func TestMySQLDriverOnGoMySQLServerInEveryMode(t *testing.T) {
	t.Parallel()
	inEveryMode(t, "go-sql-driver/mysql on go-mysql-server", startMySQLServer(t), goMySQLServerWords())
}

func goMySQLServerWords() conformance.Words {
	w := mysqlWords()
	w.Do = "SET @x = "
	w.Kill, w.Alive, w.Running, w.Stalls = "", "", "", ""
	return w
}

// startMySQLServer returns the DSN of a server in this process.
func startMySQLServer(t *testing.T) string {
	t.Helper()
	db := memory.NewDatabase("conformance")
	db.BaseDatabase.EnablePrimaryKeyIndexes()
	provider := memory.NewDBProvider(db)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := server.Config{Protocol: "tcp", Address: listener.Addr().String(), Listener: listener, Version: "8.0.31"}
	s, err := server.NewServer(config, sqle.NewDefault(provider), gmssql.NewContext, memory.NewSessionBuilder(provider), nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Start() }()
	t.Cleanup(func() {
		s.Close()
		if err := <-done; err != nil && !strings.Contains(err.Error(), "closed") {
			t.Errorf("server: %v", err)
		}
	})
	return fmt.Sprintf("root@tcp(%s)/conformance", listener.Addr())
}
