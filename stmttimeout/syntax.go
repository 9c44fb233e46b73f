package stmttimeout

import "strings"

// syntax is how a server's SQL writes what is not code.
type syntax struct {
	lineEnds   string // the bytes that end a comment of one line
	hash       bool   // # starts a comment of one line, as -- does
	nested     bool   // block comments nest
	executable bool   // the inside of /*! */ is code
}

var (
	postgresSyntax = &syntax{lineEnds: "\r\n", nested: true}
	mysqlSyntax    = &syntax{lineEnds: "\n", hash: true, executable: true}
)

const blanks = " \t\r\n\f\v"

// skipBlank skips white space and comments. It stops at a comment whose inside is code, and at one that has no end.
func (s *syntax) skipBlank(text string) string {
	for {
		text = strings.TrimLeft(text, blanks)
		end := s.commentEnd(text)
		if end <= 0 {
			return text
		}
		text = text[end:]
	}
}

// commentEnd returns the length of the comment that text starts with, 0 if it starts with none or with one that has no end.
func (s *syntax) commentEnd(text string) int {
	switch {
	case strings.HasPrefix(text, "--"), s.hash && strings.HasPrefix(text, "#"):
		if end := strings.IndexAny(text, s.lineEnds); end >= 0 {
			return end
		}
		return len(text)
	case s.executable && executableMark(text) > 0, !strings.HasPrefix(text, "/*"):
		return 0
	}
	return s.blockEnd(text)
}

func (s *syntax) blockEnd(text string) int {
	depth := 1
	for at := len("/*"); at+1 < len(text); at++ {
		switch {
		case text[at] == '*' && text[at+1] == '/':
			depth--
			at++
		case s.nested && text[at] == '/' && text[at+1] == '*':
			depth++
			at++
		}
		if depth == 0 {
			return at + 1
		}
	}
	return 0
}

// executableMark returns the length of the opening of a comment that MySQL or MariaDB executes, 0 if text has none there.
func executableMark(text string) int {
	for _, mark := range [...]string{"/*!", "/*M!"} {
		if strings.HasPrefix(text, mark) {
			return len(mark)
		}
	}
	return 0
}

// intoExecutable steps into a comment that the server executes, past the version that may stand there: /*!50000 SET ... */.
func intoExecutable(text string) string {
	text = mysqlSyntax.skipBlank(text)
	mark := executableMark(text)
	if mark == 0 {
		return text
	}
	return strings.TrimLeft(text[mark:], "0123456789")
}

// cutWord skips blanks and comments and splits the word that follows off. It is empty where something else follows.
func (s *syntax) cutWord(text string) (word, rest string) {
	text = s.skipBlank(text)
	end := 0
	for end < len(text) && wordByte[text[end]] {
		end++
	}
	return text[:end], text[end:]
}

// anyWord reports whether match accepts one of the words of the text, those in literals and comments included.
func anyWord(text string, match func(string) bool) bool {
	for at := 0; at < len(text); at++ {
		start := at
		for at < len(text) && wordByte[text[at]] {
			at++
		}
		if at > start && match(text[start:at]) {
			return true
		}
	}
	return false
}

// wordByte are the bytes of an unquoted identifier, those of a multi-byte character included.
var wordByte = func() (is [256]bool) {
	for b := range is {
		c := byte(b)
		is[b] = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c >= 0x80
	}
	return is
}()

// isWord compares a word with a lower-case ASCII one.
func isWord(word, lower string) bool {
	return len(word) == len(lower) && equalFold(word, lower)
}

func hasPrefixFold(s, lower string) bool {
	return len(s) >= len(lower) && equalFold(s[:len(lower)], lower)
}

func hasSuffixFold(s, lower string) bool {
	return len(s) >= len(lower) && equalFold(s[len(s)-len(lower):], lower)
}

// equalFold compares strings of the same length, lower being lower-case letters and underscores. Setting one bit makes a
// letter of no byte but its upper case, and no letter or digit equal to an underscore.
func equalFold(s, lower string) bool {
	for i := range len(lower) {
		if s[i]|0x20 != lower[i]|0x20 {
			return false
		}
	}
	return true
}
