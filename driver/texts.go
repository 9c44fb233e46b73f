package driver

// textCache remembers what the texts seen last on a connection mean, so that the usual statement, whose text is a
// constant of the program, costs one comparison of pointers.
type textCache [8]struct {
	query  string
	traits Traits
}

// maxCachedText keeps giant generated statements from being held in memory.
const maxCachedText = 4096

// traits looks query up, and marks the connection if it may change the session's settings, or what names mean.
func (p *Physical) traits(query string) Traits {
	slot := &p.texts[len(query)%len(p.texts)]
	if slot.query != query || query == "" {
		t := p.lender.Inspect(query)
		if !keepsMeaning(query) {
			t |= changesMeaning
		}
		if len(query) > maxCachedText {
			return p.note(t)
		}
		slot.query, slot.traits = query, t
	}
	return p.note(slot.traits)
}

func (p *Physical) note(t Traits) Traits {
	if t&TouchesSettings != 0 {
		p.touched = true
	}
	if t&changesMeaning != 0 {
		p.renames()
	}
	return t | p.inTx
}
