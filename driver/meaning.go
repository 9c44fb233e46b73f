package driver

import "strings"

// A prepared statement means what its names meant when it was prepared: after USE, or with another search_path, the same text
// is another statement. So a connection remembers that its borrower may have changed that. What the borrower prepares from
// then on is its own, and prepared for it; and of the statements that the connection keeps, later borrowers who prepare one
// get none from before.

// changesMeaning is set for a statement after which a name may mean something else.
const changesMeaning Traits = 1 << 7

func (p *Physical) renames() {
	p.renamed = true
	p.stmts.epoch++
}

// keepsMeaning reports whether names mean the same after query, as far as its text tells. Literals are not told from code.
func keepsMeaning(query string) bool {
	if mentionsSetConfig(query) || strings.Contains(query, "/*!") || strings.Contains(query, "/*M!") { // code to MySQL, MariaDB
		return false
	}
	for command := range strings.SplitSeq(query, ";") {
		if redefines(command) {
			return false
		}
	}
	return true
}

// redefines reports whether a command with this first word may give names another meaning, or runs SQL that is not in the text.
func redefines(command string) bool {
	command = skipComments(command)
	end := strings.IndexFunc(command, func(r rune) bool { return r|0x20 < 'a' || r|0x20 > 'z' })
	if end < 0 {
		end = len(command)
	}
	switch strings.ToLower(command[:end]) {
	case "use", "set", "reset", "discard", "deallocate", "create", "drop", "alter", "rename", "import",
		"call", "do", "exec", "execute", "pragma", "attach", "detach":
		return true
	}
	return false
}

// mentionsSetConfig looks for PostgreSQL's function in any case, without allocation.
func mentionsSetConfig(text string) bool {
	const name, before, after = "set_config", len("set"), len("_config")
	for at := 0; ; at++ {
		next := strings.IndexByte(text[at:], '_')
		if next < 0 {
			return false
		}
		at += next
		if at >= before && len(text) >= at+after && strings.EqualFold(text[at-before:at+after], name) {
			return true
		}
	}
}
