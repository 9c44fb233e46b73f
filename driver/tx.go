package driver

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
)

var _ sqldriver.Tx = (*tx)(nil)

// tx is a transaction. The context of its BEGIN stays alive until it ends: pgx uses it to commit.
type tx struct {
	k  call
	tx sqldriver.Tx
}

// newTx takes over the call that began the transaction.
func newTx(k *call, t sqldriver.Tx) *tx {
	k.p.guard.doing |= doingTx
	k.pause(nil)
	k.done = true
	return &tx{k: *k, tx: t}
}

// begun has the pool set up a transaction that has just begun.
func (p *Physical) begun(ctx context.Context, t sqldriver.Tx) error {
	enforced, err := p.lender.Begun(ctx)
	if err != nil {
		p.unfit = true
		t.Rollback()
		return err
	}
	if enforced {
		p.inTx = ServerEnforced
	}
	return nil
}

func (t *tx) Commit() error {
	if err := t.restart("COMMIT"); err != nil {
		t.k.release()
		return err
	}
	defer t.k.c.abandon(&t.k.done)
	err := t.tx.Commit()
	t.k.p.guard.doing &^= doingTx
	return t.k.end(err)
}

// Rollback goes through even on a connection whose guard has fired: it is thrown away anyhow.
func (t *tx) Rollback() error {
	if t.k.gone() {
		t.k.release()
		return t.k.c.whyGone()
	}
	unkept := t.k.caller.Err() != nil && !t.k.p.keepsAfterRollback()
	if unkept {
		t.k.p.unfit = true
	}
	if t.restart("ROLLBACK") != nil && !t.k.resumeLate() {
		t.k.release()
		return t.k.c.whyGone()
	}
	defer t.k.c.abandon(&t.k.done)
	err := t.tx.Rollback()
	t.k.p.guard.doing &^= doingTx
	if err = t.k.end(err); unkept && calledBy("sql.(*Tx).awaitDone", 16) {
		t.k.c.gaveUp()
	}
	return err
}

// gaveUp does to a *sql.Conn what database/sql does when it rolls back because a context has ended: unless the driver can
// reset and validate a session, it closes the connection. A virtual one can be both, so it does not see to that itself.
// (ErrBadConn would have it do so, but then it leaks the transaction's statements.)
func (c *Conn) gaveUp() {
	if c.phys != nil && c.unbind() {
		c.refusal = sql.ErrConnDone
	}
}

// restart makes COMMIT or ROLLBACK a statement of its own, with the pool's limit: a limit that the context of BEGIN
// carried was for BEGIN alone, and so was its deadline, as far as the driver does not keep to it. (Broken off, a COMMIT
// that plain lets succeed would leave its caller with no answer.)
func (t *tx) restart(text string) error {
	k := &t.k
	if k.gone() {
		return k.c.whyGone()
	}
	k.done = false
	k.spent, k.began, k.latest = 0, Now(), forever
	k.rest = 0 // the guard knows the limit of BEGIN
	if k.lookAt != 0 {
		k.watchFrom(k.began)
	}
	k.limit = k.p.lender.Limit(context.Background(), k.p.traits(text))
	k.p.inTx = 0
	return k.resume()
}
