package libraries

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/sqlbulkhead/sqlbulkhead/integration/libraries/ent"
	"github.com/sqlbulkhead/sqlbulkhead/integration/libraries/ent/employee"
	"github.com/sqlbulkhead/sqlbulkhead/integration/libraries/ent/predicate"
)

// entWorks keeps clients apart: a migration of ent's writes to tables that its generated code shares between them.
var entWorks sync.Mutex

func TestEntWorksAsOnAPlainHandle(t *testing.T) {
	on(t, []server{postgres, mariadb}, func(t *testing.T, s server) {
		runs("entgo.io/ent")
		exercise(t, s, func(tb testing.TB, db *sql.DB) job {
			client := ent.NewClient(ent.Driver(entsql.OpenDB(s.ent(), db)))
			return func(ctx context.Context, j *journal) {
				entWorks.Lock()
				defer entWorks.Unlock()
				j.must(client.Schema.Create(ctx))
				j.must(client.Schema.Create(ctx)) // finds what is there
				j.lost = 2                        // atlas, which does that, asks for the server's version without a context
				entWrites(ctx, client, j)
				entReads(ctx, s, client, j)
				entTransactions(ctx, s, client, j)
				_, err := db.ExecContext(ctx, "DROP TABLE "+employee.Table) // ent drops no tables
				j.must(err)
			}
		})
	})
}

func (s server) ent() string {
	return map[string]string{"pgx": dialect.Postgres, "mysql": dialect.MySQL}[s.driver]
}

func entWrites(ctx context.Context, client *ent.Client, j *journal) {
	ada, err := client.Employee.Create().SetName("Ada").Save(ctx)
	j.must(err)
	staff, err := client.Employee.CreateBulk(
		client.Employee.Create().SetName("Bob").SetBoss(ada),
		client.Employee.Create().SetName("Cy").SetBoss(ada),
		client.Employee.Create().SetName("Di"),
	).Save(ctx)
	j.must(err)
	j.got("ids", ada.ID, staff[0].ID, staff[2].ID)

	_, err = client.Employee.Create().SetName("Ada").Save(ctx)
	j.got("duplicate", ent.IsConstraintError(err), err)
	n, err := client.Employee.Update().Where(employee.NameIn("Di", "nobody")).SetBossID(staff[0].ID).Save(ctx)
	j.got("updated", n, err)
	_, err = client.Employee.UpdateOneID(4711).SetName("nobody").Save(ctx)
	j.got("not found", ent.IsNotFound(err))
}

func entReads(ctx context.Context, s server, client *ent.Client, j *journal) {
	bosses, err := client.Employee.Query().
		Where(employee.HasReports()).
		WithReports(func(q *ent.EmployeeQuery) { q.Order(employee.ByName()) }).
		Order(employee.ByID()).All(ctx)
	j.must(err)
	for _, boss := range bosses {
		for _, e := range boss.Edges.Reports {
			j.got("reports", boss.Name, e.ID, e.Name)
		}
	}
	names, err := client.Employee.Query().Where(employee.HasBossWith(employee.Name("Ada"))).Order(employee.ByName()).Select(employee.FieldName).Strings(ctx)
	j.got("joined", names, err)
	n, err := client.Employee.Query().Count(ctx)
	j.got("count", n, err)
	j.ran(entHere(ctx, s, client.Employee, j))
}

func entTransactions(ctx context.Context, s server, client *ent.Client, j *journal) {
	leaf := employee.Not(employee.HasReports())
	for _, end := range []func(*ent.Tx) error{(*ent.Tx).Rollback, (*ent.Tx).Commit} {
		tx, err := client.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
		j.must(err)
		j.ran(entHere(ctx, s, tx.Employee, j))
		n, err := entDelete(ctx, tx, leaf)
		j.got("deleted", n, err)
		j.ran(entHere(ctx, s, tx.Employee, j))
		j.must(end(tx))
		left, err := client.Employee.Query().Order(employee.ByID()).IDs(ctx)
		j.got("left", left, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	_, err := client.Employee.Query().Count(ctx)
	j.got("cancelled", errors.Is(err, context.Canceled))
}

// entDelete deletes one by one: MariaDB deletes from no table that the same statement looks into.
func entDelete(ctx context.Context, tx *ent.Tx, which predicate.Employee) (n int, err error) {
	ids, err := tx.Employee.Query().Where(which).IDs(ctx)
	for _, id := range ids {
		if err := tx.Employee.DeleteOneID(id).Exec(ctx); err != nil {
			return n, err
		}
		n++
	}
	return n, err
}

// entHere has a query of ent's say where it runs.
func entHere(ctx context.Context, s server, c *ent.EmployeeClient, j *journal) string {
	here, err := c.Query().Aggregate(func(*entsql.Selector) string { return "max(" + s.here + ")" }).String(ctx)
	j.must(err)
	return here
}
