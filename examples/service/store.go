package main

import (
	"context"
	"database/sql"
)

// store is the queries. It knows nothing of pools: it passes the context on, as any code over database/sql does.
type store struct {
	db            *sql.DB
	login, report string // SQL
}

func newStore(db *sql.DB) store {
	return store{
		db:     db,
		login:  "SELECT count(*) FROM example_users WHERE name = $1",
		report: "SELECT buyer, sum(cents) FROM example_orders GROUP BY buyer ORDER BY buyer",
	}
}

// Login reports whether there is such a user.
func (s store) Login(ctx context.Context, user string) (bool, error) {
	var n int
	err := s.db.QueryRowContext(ctx, s.login, user).Scan(&n)
	return n > 0, err
}

// line is a line of the report.
type line struct {
	Buyer string `json:"buyer"`
	Cents int64  `json:"cents"`
}

// Report is the turnover by buyer.
func (s store) Report(ctx context.Context) ([]line, error) {
	rows, err := s.db.QueryContext(ctx, s.report)
	if err != nil {
		return nil, err
	}
	defer rows.Close() // the connection is held until then
	var report []line
	for rows.Next() {
		var l line
		if err := rows.Scan(&l.Buyer, &l.Cents); err != nil {
			return nil, err
		}
		report = append(report, l)
	}
	return report, rows.Err()
}
