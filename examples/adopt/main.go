// Adopt is what docs/adopt.md builds, step by step: a service with logins, a report and an export that nobody has tagged
// yet, in Observe mode until the environment says otherwise, with metrics, the live page and the plan. Run it with
//
//	go run ./examples/adopt
//	curl -d user=ada localhost:8080/login
//	curl localhost:8080/report
//	curl localhost:8080/plan
//
// which keeps its data in a temporary SQLite file, or with --driver pgx --dsn postgres://…, where it reads no table.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)

func main() {
	driver := flag.String("driver", "sqlite", "`name`: sqlite or pgx")
	dsn := flag.String("dsn", "", "data source `name`; for sqlite empty means a temporary file")
	config := flag.String("config", "", "JSON `file` of the pools, as /plan/config gives it; empty: none")
	addr := flag.String("addr", "localhost:8080", "`address` to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *driver, *dsn, *config, *addr); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, driver, dsn, config, addr string) error {
	if driver == "sqlite" && dsn == "" {
		dir, err := os.MkdirTemp("", "sqlbulkhead-adopt-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		dsn = filepath.Join(dir, "shop.sqlite")
	}
	s, err := open(driver, dsn, config)
	if err != nil {
		return err
	}
	defer s.db.Close()
	if err := s.reg.Warm(ctx); err != nil { // a connection in each pool, before it is ready
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s.routes(), ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() { stopped <- server.Shutdown(context.WithoutCancel(ctx)) })
	log.Printf("listening on http://%s, %s mode", listener.Addr(), s.reg.Mode())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
