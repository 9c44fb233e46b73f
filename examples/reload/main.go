// Reload is a program whose pools follow a file while it runs: sizes, timeouts and queue bounds change without a restart,
// and a file that cannot be applied is refused with one line in the log, while everything goes on as it was.
//
//	echo '{"budget": 12, "pools": {"reporting": {"max_open_conns": 2}}}' > /tmp/pools.json
//	go run ./examples/reload --config /tmp/pools.json
//	echo '{"budget": 12, "pools": {"reporting": {"max_open_conns": 4}}}' > /tmp/pools.json    # applied
//	echo '{"default": "batch"}' > /tmp/pools.json                                             # refused, and says why
//
// The watching is in watch.go.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	_ "modernc.org/sqlite"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

func main() {
	path := flag.String("config", "pools.json", "JSON `file` to follow")
	every := flag.Duration("every", 2*time.Second, "`time` between two looks at it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *path, *every); err != nil {
		log.Fatal(err)
	}
}

// run opens the pools as the file has them, and follows it until ctx ends. The service itself would be started in between.
func run(ctx context.Context, path string, every time.Duration) error {
	if every <= 0 {
		return fmt.Errorf("flag --every must be positive, got %v", every)
	}
	w := &watcher{path: path, log: slog.Default()}
	config, err := w.load()
	if err != nil {
		return err // at the start there is nothing to go on with
	}
	dir, err := os.MkdirTemp("", "sqlbulkhead-reload-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := partition.Open("sqlite", "file:"+filepath.Join(dir, "shop.sqlite"), partition.WithConfig(config))
	if err != nil {
		return err
	}
	defer db.Close()
	w.registry, _ = partition.RegistryOf(db)
	w.log.Info("the pools are open", "file", path, "sizes", w.sizes())
	w.follow(ctx, every)
	return nil
}
