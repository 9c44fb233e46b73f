package testserver

import "testing"

func TestAddressOfDSNIsFoundAndReplaced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ dsn, addr, moved string }{
		{
			postgres{}.dsn(5432, "p@ss/1"), "127.0.0.1:5432",
			"postgres://sqlbulkhead:p%40ss%2F1@there:1/postgres?sslmode=disable",
		},
		{mariadb{}.dsn(3306, "secret"), "127.0.0.1:3306", "sqlbulkhead:secret@tcp(there:1)/sqlbulkhead"},
		{"user:p@tcp(1)$1@tcp(db:3306)/x", "db:3306", "user:p@tcp(1)$1@tcp(there:1)/x"},
		{"user@unix(/run/s)/x", "", "user@unix(/run/s)/x"},
		{"host=db port=5432", "", "host=db port=5432"},
	} {
		if got := AddrOf(c.dsn); got != c.addr {
			t.Errorf("AddrOf(%q) = %q, want %q", c.dsn, got, c.addr)
		}
		if got := WithAddr(c.dsn, "there:1"); got != c.moved {
			t.Errorf("WithAddr(%q) = %q, want %q", c.dsn, got, c.moved)
		}
	}
}
