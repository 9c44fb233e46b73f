package main

import (
	"context"
	"errors"
	"testing"
	"time"
)

// open is a database in a temporary file and a handle with that many
// connections.
func open(t *testing.T, s settings) (*database, store) {
	t.Helper()
	db, err := openDatabase(t.Context(), "sqlite", "")
	if err != nil {
		t.Fatal(err)
	}
	handle, err := openShared(db.driver, db.dsn, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		handle.Close()
		if err := db.close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return db, db.store(handle, s.hold)
}

func TestReportTakesItsTime(t *testing.T) {
	t.Parallel()
	for _, report := range []time.Duration{10 * time.Millisecond, 120 * time.Millisecond} {
		_, s := open(t, settings{connections: 1, hold: report})
		begin := time.Now()
		if err := s.Report(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took < report {
			t.Errorf("a report of %v took %v", report, took)
		}
	}
}

func TestReportIsDividedAmongRowsThatExist(t *testing.T) {
	t.Parallel()
	for report, want := range map[time.Duration]int{
		time.Millisecond: 1, 50 * time.Millisecond: 1, 2 * time.Second: 40, time.Hour: users,
	} {
		args := pauses(report)
		if seconds, rows := args[0].(float64), args[1].(int); rows != want || time.Duration(seconds*float64(rows)*1e9).Round(time.Microsecond) != report {
			t.Errorf("%v: %v", report, args)
		}
	}
}

func TestReportHoldsOneConnectionAndNoOther(t *testing.T) {
	t.Parallel()
	_, s := open(t, settings{connections: 2, hold: 20 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Report(ctx) }()
	for s.db.Stats().InUse == 0 {
		time.Sleep(time.Millisecond)
	}
	for user := range 2 * users { // every one of them, and around
		if err := s.Login(t.Context(), user); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("the report did not wait: %v", err)
	default:
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a report that was cut off gave %v", err)
	}
}
