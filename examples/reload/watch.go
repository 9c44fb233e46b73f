package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// watcher keeps a registry as a file says.
//
// It reads the file every few seconds and compares the content, instead of asking the file system for notifications or
// looking at the modification time: in a container the file is often a ConfigMap of Kubernetes, which changes by a symbolic
// link that comes to point to another directory, so that the file one has watched never changes at all; and mounts from
// elsewhere send no notifications. A file of a kilobyte costs nothing to read.
type watcher struct {
	path     string
	registry *partition.Registry
	log      *slog.Logger

	seen    []byte // what was applied or refused last
	problem string // why the file could not be read, the last time
}

// load reads the file for the start.
func (w *watcher) load() (partition.Config, error) {
	content, err := os.ReadFile(w.path)
	if err != nil {
		return partition.Config{}, err
	}
	w.seen = content
	return partition.LoadConfig(bytes.NewReader(content))
}

// follow looks at the file until ctx ends.
func (w *watcher) follow(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			w.look()
		case <-ctx.Done():
			return
		}
	}
}

// look applies the file if it has changed. What is wrong is said once, not with every look.
func (w *watcher) look() {
	content, err := os.ReadFile(w.path)
	if err != nil {
		if w.problem != err.Error() {
			w.problem = err.Error()
			w.log.Warn("the pools' file cannot be read, they stay as they are", "error", err)
		}
		return
	}
	w.problem = ""
	if bytes.Equal(content, w.seen) {
		return
	}
	w.seen = content
	config, err := partition.LoadConfig(bytes.NewReader(content))
	if err == nil {
		err = w.registry.Apply(config)
	}
	if err != nil {
		w.log.Warn("the pools' file is refused, they stay as they are", "file", w.path, "error", err)
		return
	}
	w.log.Info("the pools' file is applied", "file", w.path, "sizes", w.sizes())
}

func (w *watcher) sizes() map[workload.Name]int {
	sizes := make(map[workload.Name]int)
	for _, pool := range w.registry.Pools() {
		sizes[pool.Name()] = pool.Config().MaxOpenConns
	}
	return sizes
}
