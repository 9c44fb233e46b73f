// Service is an HTTP service with a login, which people wait for, and a report, which may be late, on one database. It
// shows where each protection has its place, from the outside in:
//
//	cached fallback     an old report is better than none        fallback.go
//	retries, budget     a refused call holds nothing meanwhile   retries.go
//	circuit breaker     leaves a sick database alone             breaker.go
//	bulkhead            at most so many reports at a time        pools.go
//	statement timeout   no statement outlives its use            pools.go
//
// Run it with
//
//	go run ./examples/service
//	curl -d user=ada localhost:8080/login
//	curl localhost:8080/report
//
// which keeps its data in a temporary SQLite file, or with --driver pgx --dsn postgres://…, where it makes two tables,
// example_users and example_orders, and leaves them behind.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

func main() {
	driver := flag.String("driver", "sqlite", "`name`: sqlite or pgx")
	dsn := flag.String("dsn", "", "data source `name`; for sqlite empty means a temporary file")
	addr := flag.String("addr", "localhost:8080", "`address` to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *driver, *dsn, *addr); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, driver, dsn, addr string) error {
	if driver == "sqlite" && dsn == "" {
		dir, err := os.MkdirTemp("", "sqlbulkhead-service-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		dsn = sqliteFile(filepath.Join(dir, "shop.sqlite"))
	}
	db, err := openPools(driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := prepare(ctx, db); err != nil {
		return err
	}
	return serve(ctx, addr, newService(db).routes())
}

// prepare makes the tables, and dials before the first request does.
func prepare(ctx context.Context, db *sql.DB) error {
	reg, ok := partition.RegistryOf(db)
	if !ok {
		return errors.New("the handle has no pools")
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return errors.Join(seed(ctx, db), reg.Warm(ctx))
}

// serve answers until ctx ends, and then lets the requests that are there finish. The pools are closed after that.
func serve(ctx context.Context, addr string, routes http.Handler) error {
	server := &http.Server{Addr: addr, Handler: routes, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		stopped <- server.Shutdown(ctx)
	})
	log.Printf("listening on http://%s", addr)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
