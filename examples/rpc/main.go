// Rpc is a gRPC service with a method that people wait for and one that streams a report. Interceptors choose the pool
// by the method, and answer for a pool that is full; the methods know nothing of pools.
//
//	go run ./examples/rpc
//
// It keeps its data in a temporary SQLite file, and has no generated code: its messages are those of protobuf's own
// wrappers.
package main

import (
	"context"
	"database/sql"
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	_ "modernc.org/sqlite"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func main() {
	addr := flag.String("addr", "localhost:8081", "`address` to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr string) error {
	dir, err := os.MkdirTemp("", "sqlbulkhead-rpc-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := openShop(ctx, filepath.Join(dir, "shop.sqlite"))
	if err != nil {
		return err
	}
	defer db.Close()
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := newServer(db)
	context.AfterFunc(ctx, server.GracefulStop)
	log.Printf("listening on %v", listener.Addr())
	return server.Serve(listener)
}

// byMethod is where the workload of each method is written down. What is not here is untagged, and so oltp.
var byMethod = map[string]workload.Name{
	"/shop.Shop/Report": workload.Reporting,
}

func newServer(db *sql.DB) *grpc.Server {
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(unary(byMethod)),
		grpc.ChainStreamInterceptor(stream(byMethod)))
	server.RegisterService(&shopService, &shop{db})
	return server
}

// openShop makes the table and opens the pools. Readers of a SQLite file in WAL mode do not wait for each other.
func openShop(ctx context.Context, path string, more ...partition.Option) (*sql.DB, error) {
	dsn := "file:" + path + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)"
	db, err := partition.Open("sqlite", dsn, append([]partition.Option{
		partition.WithPool(workload.Reporting, partition.PoolConfig{MaxOpenConns: 2, StatementTimeout: 10 * time.Second}),
	}, more...)...)
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(workload.With(ctx, workload.Admin),
		"CREATE TABLE users (name TEXT PRIMARY KEY); INSERT INTO users VALUES ('ada'), ('grace')"); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}
