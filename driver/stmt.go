package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"strconv"
	"strings"
)

var (
	_ sqldriver.Stmt              = (*Stmt)(nil)
	_ sqldriver.StmtExecContext   = (*Stmt)(nil)
	_ sqldriver.StmtQueryContext  = (*Stmt)(nil)
	_ sqldriver.NamedValueChecker = (*Stmt)(nil)
)

// Stmt is a virtual statement: a text. It is really prepared on whatever physical connection its Conn is bound to
// when it is used. There can be very many, so it is small.
type Stmt struct {
	c      *Conn
	text   *text  // nil if once is set
	inputs int32  // NumInput of the first prepare
	made   uint16 // c.returns, when it was prepared
	checks bool   // the driver's statements convert arguments themselves

	unchecked bool // the arguments of the call that follows

	// once is set for a statement that is not shared: one that database/sql prepares for a single use, or one that has
	// a state of its own. It lives and dies on the connection it was prepared on.
	once *onceStmt
}

// onceStmt is such a statement, and where it is at home.
type onceStmt struct {
	prepared
	query string
	home  *Physical
}

// newStmt prepares query on the bound connection, unless it is known to be prepared there.
func (c *Conn) newStmt(ctx context.Context, query string, once bool) (s *Stmt, known bool, err error) {
	if once || c.phys.renamed || isCopy(query) {
		stmt, err := c.phys.prepare(ctx, query)
		if err != nil {
			return nil, false, err
		}
		s = &Stmt{c: c, once: &onceStmt{prepared{stmt: stmt}, query, c.phys}}
		c.phys.stmts.opened(&s.once.prepared)
		s.learn(stmt)
		return s, false, nil
	}
	texts := c.phys.stmts.texts
	s = &Stmt{c: c, text: texts.acquire(query), made: uint16(c.returns)}
	cached := c.phys.stmts.kept(s.text)
	if err = ctx.Err(); err != nil && cached != nil { // else the driver says it
		texts.release(s.text)
		return nil, false, err
	}
	e, err := c.phys.take(ctx, s.text)
	if err != nil {
		texts.release(s.text)
		return nil, false, err
	}
	s.learn(e.stmt)
	c.phys.give(e, false)
	return s, e == cached, nil
}

func (s *Stmt) learn(stmt sqldriver.Stmt) {
	s.inputs = int32(stmt.NumInput())
	_, checks := stmt.(sqldriver.NamedValueChecker)
	_, converts := stmt.(columnConverter)
	s.checks = checks || converts
}

// isCopy reports whether query is PostgreSQL's COPY, which lib/pq runs through a prepared statement that collects
// rows until it is closed.
func isCopy(query string) bool {
	word := skipComments(query)
	return len(word) > 4 && strings.EqualFold(word[:4], "copy")
}

// skipComments returns query from its first word on.
func skipComments(query string) string {
	for {
		query = strings.TrimLeft(query, " \t\r\n")
		end := ""
		switch {
		case strings.HasPrefix(query, "--"):
			end = "\n"
		case strings.HasPrefix(query, "/*"):
			end = "*/"
		default:
			return query
		}
		_, query, _ = strings.Cut(query[2:], end)
	}
}

// NumInput implements driver.Stmt.
func (s *Stmt) NumInput() int { return int(s.inputs) }

// ExecContext implements driver.StmtExecContext.
func (s *Stmt) ExecContext(ctx context.Context, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	for {
		res, err := s.exec(ctx, args)
		if !s.c.again(ctx, &err) {
			return res, err
		}
	}
}

func (s *Stmt) exec(ctx context.Context, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	p, err := s.c.bound()
	if err != nil {
		return nil, err
	}
	var k call
	dctx, err := s.c.start(ctx, &k, p, s.query())
	if err != nil {
		return nil, err
	}
	defer s.c.abandon(&k.done)
	e, err := s.take(dctx, p)
	if err != nil {
		return nil, k.end(err)
	}
	var res sqldriver.Result
	if err = s.checkArgs(p, e.stmt, args); err == nil {
		res, err = execStmt(dctx, e.stmt, args)
	}
	s.give(p, e, err)
	return res, k.end(err)
}

// QueryContext implements driver.StmtQueryContext.
func (s *Stmt) QueryContext(ctx context.Context, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	for {
		r, err := s.runQuery(ctx, args)
		if !s.c.again(ctx, &err) {
			return r, err
		}
	}
}

func (s *Stmt) runQuery(ctx context.Context, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	p, err := s.c.bound()
	if err != nil {
		return nil, err
	}
	w := s.c.unusedRows()
	dctx, err := s.c.start(ctx, &w.k, p, s.query())
	if err != nil {
		return nil, err
	}
	defer s.c.abandon(&w.k.done)
	e, err := s.take(dctx, p)
	if err != nil {
		return nil, w.fail(err)
	}
	var r sqldriver.Rows
	if err = s.checkArgs(p, e.stmt, args); err == nil {
		r, err = queryStmt(dctx, e.stmt, args)
	}
	if err != nil {
		s.give(p, e, err)
		return nil, w.fail(err)
	}
	if s.once != nil {
		e = nil // it is not the rows' to give back
	}
	return w.begin(r, e), nil
}

// CheckNamedValue implements driver.NamedValueChecker. Where the really prepared statement has a say, and is yet to be
// prepared on this connection, the check is left to the call that follows: it has a context.
func (s *Stmt) CheckNamedValue(nv *sqldriver.NamedValue) error {
	p := s.c.phys
	if p == nil {
		return nil // as in Conn's
	}
	if !s.checks {
		return s.c.convert(p.checker, nil, -1, nv)
	}
	stmt := s.preparedOn(p)
	if s.unchecked = stmt == nil; s.unchecked {
		return nil
	}
	return s.convert(p, stmt, nv)
}

// preparedOn is the really prepared statement, nil if the connection has not seen the text yet.
func (s *Stmt) preparedOn(p *Physical) sqldriver.Stmt {
	if s.once != nil {
		return s.once.stmt
	}
	if e := p.stmts.entries[s.text]; e != nil {
		return e.stmt
	}
	return nil
}

func (s *Stmt) convert(p *Physical, stmt sqldriver.Stmt, nv *sqldriver.NamedValue) error {
	checker, ok := stmt.(sqldriver.NamedValueChecker)
	if !ok {
		checker = p.checker
	}
	columns, _ := stmt.(columnConverter)
	return s.c.convert(checker, columns, int(s.inputs), nv)
}

// checkArgs does what CheckNamedValue has left to do, and says of what is wrong what database/sql says.
func (s *Stmt) checkArgs(p *Physical, stmt sqldriver.Stmt, args []sqldriver.NamedValue) error {
	if !s.unchecked {
		return nil
	}
	s.unchecked = false
	for i := range args {
		if err := s.convert(p, stmt, &args[i]); err != nil {
			return fmt.Errorf("sql: converting argument %s type: %w", describe(&args[i]), err)
		}
	}
	return nil
}

func describe(nv *sqldriver.NamedValue) string {
	if nv.Name != "" {
		return "with name " + strconv.Quote(nv.Name)
	}
	return "$" + strconv.Itoa(nv.Ordinal)
}

func (s *Stmt) query() string {
	if s.once != nil {
		return s.once.query
	}
	return s.text.query
}

func (s *Stmt) take(ctx context.Context, p *Physical) (*prepared, error) {
	if s.once == nil {
		e, err := p.take(ctx, s.text)
		if err == nil {
			e.own = s.made == uint16(s.c.returns)
		}
		return e, err
	}
	if s.once.home != p {
		return nil, sqldriver.ErrBadConn
	}
	return &s.once.prepared, nil
}

func (s *Stmt) give(p *Physical, e *prepared, err error) {
	if s.once == nil {
		p.give(e, err != nil)
	}
}

// Close implements driver.Stmt. The last statement of a text is closed at once where the connection is in hand;
// other connections close it soon, when they are used next.
func (s *Stmt) Close() error {
	p := s.c.phys
	if s.once != nil {
		if p == nil || p != s.once.home || s.c.bad {
			return nil
		}
		return s.close(p, &s.once.prepared)
	}
	last := s.c.connector.texts.release(s.text)
	if !last || p == nil || s.c.bad {
		return nil
	}
	e := p.stmts.entries[s.text]
	if e == nil || e.busy {
		return nil
	}
	return s.close(p, e)
}

func (s *Stmt) close(p *Physical, e *prepared) error {
	var k call
	if _, err := s.c.start(context.Background(), &k, p, ""); err != nil {
		return nil // the connection is thrown away, and the statement with it
	}
	defer s.c.abandon(&k.done)
	return k.end(p.stmts.evict(e))
}

// Exec and Query are what database/sql calls on a statement without the methods above.

// Exec implements driver.Stmt.
func (s *Stmt) Exec(args []sqldriver.Value) (sqldriver.Result, error) {
	return s.ExecContext(context.Background(), numbered(args))
}

// Query implements driver.Stmt.
func (s *Stmt) Query(args []sqldriver.Value) (sqldriver.Rows, error) {
	return s.QueryContext(context.Background(), numbered(args))
}

func numbered(values []sqldriver.Value) []sqldriver.NamedValue {
	named := make([]sqldriver.NamedValue, len(values))
	for i, v := range values {
		named[i] = sqldriver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return named
}
