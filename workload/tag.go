package workload

import "context"

// Tag is what a context carries: one for each call of [With] or [LongHeld], and so, in most programs, one for each
// request. It is immutable, and known by its address.
type Tag struct {
	// Name is the workload's; empty, and Named false, where the context was never given one.
	Name  Name
	Named bool
	// LongHeld: see the function.
	LongHeld bool
}

// key is the context key. A struct of its own size zero makes the look-up free
// of allocation.
type key struct{}

// With returns a copy of ctx that is tagged with name. The innermost tag holds.
//
// With does not look at name, so that tagging cannot fail: a name that is not
// valid, the empty one included, is carried as it is and refused where a
// connection is acquired, as an unknown workload. Use [Name.Validate] on names
// that come from outside.
func With(ctx context.Context, name Name) context.Context {
	tag := Tag{Name: name, Named: true}
	if outer := TagOf(ctx); outer != nil {
		tag.LongHeld = outer.LongHeld
	}
	return context.WithValue(ctx, key{}, &tag)
}

// LongHeld returns a copy of ctx under which a connection may be held for as long as it takes: a session lock, LISTEN,
// a replication stream. Neither a pool's LeakAfter nor its MaxHold applies to it. The workload's name is unchanged.
func LongHeld(ctx context.Context) context.Context {
	tag := Tag{LongHeld: true}
	if outer := TagOf(ctx); outer != nil {
		tag.Name, tag.Named = outer.Name, outer.Named
	}
	return context.WithValue(ctx, key{}, &tag)
}

// From returns the name that ctx is tagged with. It is false if ctx is
// untagged. It costs one look-up in the context and allocates nothing.
func From(ctx context.Context) (Name, bool) {
	if tag := TagOf(ctx); tag != nil {
		return tag.Name, tag.Named
	}
	return "", false
}

// TagOf returns the tag of ctx, nil if it has none. It costs what From does.
func TagOf(ctx context.Context) *Tag {
	tag, _ := ctx.Value(key{}).(*Tag)
	return tag
}
