package libraries

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

var (
	oltp      = in(workload.OLTP)
	reporting = in(workload.Reporting)
)

// onGORM runs a test on GORM over a partitioned handle, in both of its modes, on both servers.
func onGORM(t *testing.T, test func(t *testing.T, s server, h *handle, gdb *gorm.DB)) {
	t.Helper()
	on(t, []server{postgres, mariadb}, func(t *testing.T, s server) {
		for _, prepared := range []bool{false, true} {
			t.Run(fmt.Sprint("PrepareStmt=", prepared), func(t *testing.T) {
				h := setup(t, s)
				test(t, s, h, openGORM(t, s, h.db, gorm.Config{PrepareStmt: prepared, TranslateError: true}))
			})
		}
	})
}

// C14: TranslateError asserts the driver's own type.
func TestGORMTranslatesADuplicateKey(t *testing.T) {
	onGORM(t, func(t *testing.T, s server, h *handle, gdb *gorm.DB) {
		if err := gdb.AutoMigrate(&gormAuthor{}, &gormBook{}); err != nil {
			t.Fatal(err)
		}
		for _, ctx := range []context.Context{oltp, reporting, context.Background()} {
			gdb.WithContext(ctx).Create(&gormAuthor{Name: "Lem"})
			if err := gdb.WithContext(ctx).Create(&gormAuthor{Name: "Lem"}).Error; !errors.Is(err, gorm.ErrDuplicatedKey) {
				t.Errorf("%v", err)
			}
		}
	})
}

// C22
func TestGORMTransactionStaysOnItsConnectionWhateverTheTagOfItsStatements(t *testing.T) {
	onGORM(t, func(t *testing.T, s server, h *handle, gdb *gorm.DB) {
		session := func(db *gorm.DB, ctx context.Context) (id int64) {
			t.Helper()
			if err := db.WithContext(ctx).Raw(s.session).Scan(&id).Error; err != nil {
				t.Error(err)
			}
			return id
		}
		session(gdb, reporting) // in PrepareStmt's mode it is prepared there
		err := gdb.WithContext(oltp).Transaction(func(tx *gorm.DB) error {
			home := session(tx, oltp)
			if got := session(tx, reporting); got != home {
				t.Errorf("under another tag the session is %d, not %d", got, home)
			}
			if got := session(gdb, oltp); got == home {
				t.Error("outside the transaction it is the same session")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// Programs cap what DB() gives them.
func TestGORMsOwnCapOnTheHandleQueuesNobody(t *testing.T) {
	onGORM(t, func(t *testing.T, s server, h *handle, gdb *gorm.DB) {
		db, err := gdb.DB()
		if err != nil || db != h.db {
			t.Fatalf("not the handle that it was given: %v", err)
		}
		db.SetMaxOpenConns(1)
		err = gdb.WithContext(reporting).Transaction(func(tx *gorm.DB) error {
			ctx, cancel := context.WithTimeout(oltp, patience)
			defer cancel()
			return errors.Join(tx.Exec("SELECT 1").Error, gdb.WithContext(ctx).Exec("SELECT 1").Error)
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// tight is a pool that a few transactions fill.
func tight(t *testing.T, s server) (*handle, *gorm.DB) {
	t.Helper()
	h := setup(t, s, partition.WithPool(workload.OLTP, partition.PoolConfig{
		MaxOpenConns: 2, MaxWaiting: 100, AcquireTimeout: time.Second,
	}))
	warm(t, h.pool(workload.OLTP))
	return h, openGORM(t, s, h.db, gorm.Config{PrepareStmt: true, SkipDefaultTransaction: true})
}

// warm dials, which is not to be a matter of these tests' short acquire timeout.
func warm(t *testing.T, p *partition.Pool) {
	t.Helper()
	eventually(t, func() string {
		open := 0
		for range p.Config().MaxOpenConns {
			if c, err := p.DB().Conn(context.Background()); err == nil {
				defer c.Close()
				open++
			}
		}
		if open < p.Config().MaxOpenConns {
			return fmt.Sprintf("%d connections", open)
		}
		return ""
	})
}

const disputed = "SELECT 40 + 2"

// standoff has two transactions take both connections, and a third caller, who has none, prepare a text that the two
// want then: with PrepareStmt GORM prepares a text once, and whoever else wants it waits, whether or not he holds a
// connection. What the three get comes through errs.
func standoff(t *testing.T, gdb *gorm.DB, waits func() bool) (holders []*gorm.DB, errs chan error) {
	t.Helper()
	errs = make(chan error, 3)
	use := func(db *gorm.DB) {
		var n int
		errs <- db.Raw(disputed).Scan(&n).Error
	}
	for range 2 {
		tx := gdb.Begin()
		if tx.Error != nil {
			t.Fatal(tx.Error)
		}
		t.Cleanup(func() { tx.Rollback() })
		holders = append(holders, tx)
	}
	go use(gdb)
	eventually(t, func() string {
		if !waits() {
			return "nobody waits"
		}
		return ""
	})
	for _, tx := range holders {
		go use(tx)
	}
	return holders, errs
}

func TestGORMPrepareStmtOnAFullPoolIsRejectedInsteadOfDeadlocking(t *testing.T) {
	on(t, []server{postgres, mariadb}, func(t *testing.T, s server) {
		h, gdb := tight(t, s)
		holders, errs := standoff(t, gdb.WithContext(oltp), func() bool {
			s := h.pool(workload.OLTP).Stats()
			return s.Waiting > 0 || s.RejectedTimeout > 0
		})
		if rejections(t, errs, 3) == 0 {
			t.Error("no one was rejected")
		}
		for _, tx := range holders { // they still have their connections
			var n int
			if err := tx.Raw(disputed).Scan(&n).Error; err != nil || n != 42 {
				t.Errorf("%d, %v", n, err)
			}
		}
	})
}

// Otherwise the test above would prove nothing.
func TestGORMPrepareStmtOnAFullPlainHandleDeadlocks(t *testing.T) {
	on(t, []server{postgres, mariadb}, func(t *testing.T, s server) {
		db := plain(t, s)
		db.SetMaxOpenConns(2)
		ctx, cancel := context.WithCancel(oltp)
		defer cancel()
		gdb := openGORM(t, s, db, gorm.Config{PrepareStmt: true, SkipDefaultTransaction: true})
		_, errs := standoff(t, gdb.WithContext(ctx), func() bool { return db.Stats().WaitCount > 0 })
		select {
		case err := <-errs:
			t.Errorf("somebody got %v", err)
		case <-time.After(300 * time.Millisecond):
		}
		cancel()
		for range 3 {
			if err := <-errs; !errors.Is(err, context.Canceled) && !errors.Is(err, sql.ErrTxDone) {
				t.Errorf("after the cancel: %v", err)
			}
		}
	})
}

// rejections waits for n callers, of whom each must have succeeded or been rejected.
func rejections(t *testing.T, errs <-chan error, n int) (rejected int) {
	t.Helper()
	deadline := time.After(patience)
	for range n {
		select {
		case err := <-errs:
			var acquire *partition.AcquireError
			switch {
			case err == nil:
			case errors.Is(err, partition.ErrRejected) && errors.As(err, &acquire) && acquire.Workload == workload.OLTP:
				rejected++
			default:
				t.Errorf("neither success nor a rejection: %v", err)
			}
		case <-deadline:
			t.Fatalf("some of %d callers hang", n)
		}
	}
	return rejected
}

func TestGORMPrepareStmtStormOnAFullPoolEnds(t *testing.T) {
	on(t, []server{postgres, mariadb}, func(t *testing.T, s server) {
		const callers, rounds = 8, 4
		h, gdb := tight(t, s)
		errs := make(chan error, callers*rounds)
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for round := range rounds {
					errs <- gormNested(gdb.WithContext(oltp), fmt.Sprint("SELECT ", round))
				}
			})
		}
		t.Logf("%d of %d rejected", rejections(t, errs, callers*rounds), callers*rounds)
		all.Wait()
		h.settled()
		if err := gormNested(gdb.WithContext(oltp), "SELECT 1"); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// gormNested wants a text inside a transaction and outside, and so two connections at a time.
func gormNested(gdb *gorm.DB, query string) error {
	return gdb.Transaction(func(tx *gorm.DB) error {
		var inside, outside int
		return errors.Join(tx.Raw(query).Scan(&inside).Error, gdb.Raw(query).Scan(&outside).Error)
	})
}

// GORM loses the error of a failed Prepare there, whatever the handle; README says what to use instead.
func TestGORMPreparedRowPanicsWithoutAConnectionAsOnAPlainHandle(t *testing.T) {
	on(t, []server{postgres}, func(t *testing.T, s server) {
		panics := func(gdb *gorm.DB) (panics bool) {
			defer func() { panics = recover() != nil }()
			var n int
			gdb.Raw("SELECT 1").Row().Scan(&n)
			return
		}
		ended, cancel := context.WithCancel(oltp)
		cancel()
		want := panics(openGORM(t, s, plain(t, s), gorm.Config{PrepareStmt: true}).WithContext(ended))
		h := setup(t, s)
		gdb := openGORM(t, s, h.db, gorm.Config{PrepareStmt: true}).WithContext(oltp)
		h.pool(workload.OLTP).Pause()
		if got := panics(gdb); got != want {
			t.Errorf("panics: %v, plain: %v", got, want)
		}
		var n int
		if err := gdb.Raw("SELECT 1").Scan(&n).Error; !errors.Is(err, partition.ErrPaused) {
			t.Errorf("Scan: %v", err)
		}
		rows, err := gdb.Raw("SELECT 1").Rows()
		if !errors.Is(err, partition.ErrPaused) {
			t.Errorf("Rows: %v", err)
			rows.Close()
		}
	})
}
