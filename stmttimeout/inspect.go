package stmttimeout

import "strings"

// The texts of statements are scanned without allocation, and case-insensitively in ASCII alone: the servers' own names
// are ASCII. Literals and comments are not told from code, except where a command starts: a wrong hit costs one round
// trip.

// mentionsSetting reports whether the text names a setting that a Setup sets, or the function that sets them. All of the
// names have an underscore, which is rare and found fast.
func mentionsSetting(text string) bool {
	for at := 0; ; at++ {
		next := strings.IndexByte(text[at:], '_')
		if next < 0 {
			return false
		}
		at += next
		if settingAt(text[:at], text[at+1:]) {
			return true
		}
	}
}

// settingAt looks at what stands before and after an underscore.
func settingAt(before, after string) bool {
	if after == "" {
		return false
	}
	switch after[0] | 0x20 {
	case 't':
		return timeAt(before, after)
	case 'c':
		return hasPrefixFold(after, "config") && hasSuffixFold(before, "set")
	case 'o':
		return hasPrefixFold(after, "only") && hasSuffixFold(before, "read")
	case 'n':
		return hasPrefixFold(after, "name") && hasSuffixFold(before, "application")
	}
	return false
}

// timeAt: every _timeout, statement_time and execution_time, but neither the function statement_timestamp nor the hint
// MAX_EXECUTION_TIME(n).
func timeAt(before, after string) bool {
	if !hasPrefixFold(after, "time") {
		return false
	}
	after = after[len("time"):]
	switch {
	case hasPrefixFold(after, "out"):
		return true
	case hasSuffixFold(before, "statement"):
		return !hasPrefixFold(after, "stamp")
	}
	return hasSuffixFold(before, "execution") && !strings.HasPrefix(trimBlanks(after), "(")
}

// anyCommand reports whether match accepts the text from the start of one of its commands: the beginning, and what follows
// a semicolon.
func anyCommand(text string, match func(string) bool) bool {
	for {
		if match(text) {
			return true
		}
		end := strings.IndexByte(text, ';')
		if end < 0 {
			return false
		}
		text = text[end+1:]
	}
}

// resets reports whether a command with this first word may put settings back, or runs SQL that is not in the text.
func resets(word string) bool {
	return isWord(word, "reset") || isWord(word, "discard") || isWord(word, "execute")
}

// touchesPostgres reports whether the command at the start of text changes settings without naming one. A DO block may
// hold anything.
func touchesPostgres(text string) bool {
	word, rest := postgresSyntax.cutWord(text)
	if !isWord(word, "set") {
		return resets(word) || isWord(word, "do")
	}
	word, rest = postgresSyntax.cutWord(rest)
	next, _ := postgresSyntax.cutWord(rest)
	return isWord(word, "session") && isWord(next, "characteristics")
}

// touchesMySQL is the same for MySQL and MariaDB. A comment that some servers execute may hold the command, or stand before
// it.
func touchesMySQL(text string) bool {
	text = mysqlSyntax.skipBlank(text)
	for {
		mark := executableMark(text)
		if mark == 0 {
			return commandTouchesMySQL(text)
		}
		if commandTouchesMySQL(text[mark:]) {
			return true
		}
		end := mysqlSyntax.blockEnd(text)
		if end == 0 {
			return false
		}
		text = mysqlSyntax.skipBlank(text[end:])
	}
}

func commandTouchesMySQL(text string) bool {
	word, rest := mysqlSyntax.cutWord(text)
	if !isWord(word, "set") {
		return resets(word)
	}
	word, rest = mysqlSyntax.cutWord(rest)
	next, _ := mysqlSyntax.cutWord(rest)
	return (isWord(word, "session") || isWord(word, "local")) && isWord(next, "transaction")
}

// mysqlTouches is TouchesSettings or nothing, for MySQL and MariaDB.
func mysqlTouches(query string) Traits {
	if mentionsSetting(query) || anyCommand(query, touchesMySQL) {
		return TouchesSettings
	}
	return 0
}

// plainSelect reports whether the text is a SELECT and nothing that makes MySQL ignore max_execution_time: no INTO, no FOR
// UPDATE or LOCK IN SHARE MODE, no hint of its own, no second statement.
func plainSelect(text string) bool {
	word, rest := mysqlSyntax.cutWord(text)
	return isWord(word, "select") && strings.IndexByte(rest, ';') < 0 &&
		!hasWord(rest, "for", 0) && !hasWord(rest, "into", 0) && !hasWord(rest, "lock", 3) && !hasWord(rest, "max_execution_time", 2)
}
