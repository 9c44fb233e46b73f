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

// trimBlanks is strings.TrimLeft without the set that it builds each time.
func trimBlanks(text string) string {
	for text != "" && (text[0] == ' ' || text[0] >= '\t' && text[0] <= '\r') {
		text = text[1:]
	}
	return text
}

// skipBlank skips white space and comments. It stops at a comment whose inside is code, and at one that has no end.
func (s *syntax) skipBlank(text string) string {
	for {
		text = trimBlanks(text)
		end := s.commentEnd(text)
		if end <= 0 {
			return text
		}
		text = text[end:]
	}
}

// commentEnd returns the length of the comment that text starts with, 0 if it starts with none or with one that has no end.
func (s *syntax) commentEnd(text string) int {
	if text == "" {
		return 0
	}
	switch text[0] {
	case '-':
		if strings.HasPrefix(text, "--") {
			return s.lineEnd(text)
		}
	case '#':
		if s.hash {
			return s.lineEnd(text)
		}
	case '/':
		if strings.HasPrefix(text, "/*") && !(s.executable && executableMark(text) > 0) {
			return s.blockEnd(text)
		}
	}
	return 0
}

func (s *syntax) lineEnd(text string) int {
	if end := strings.IndexAny(text, s.lineEnds); end >= 0 {
		return end
	}
	return len(text)
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

// executableMark returns the length of the opening of a comment that MySQL or MariaDB executes, with the version that may
// stand there (/*!50000 or /*M!100100); 0 if text starts with none.
func executableMark(text string) int {
	if !strings.HasPrefix(text, "/*!") && !strings.HasPrefix(text, "/*M!") {
		return 0
	}
	inside := text[strings.IndexByte(text, '!')+1:]
	return len(text) - len(strings.TrimLeft(inside, "0123456789"))
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

// wordByte are the bytes of an unquoted identifier, those of a multi-byte character included.
var wordByte = func() (is [256]bool) {
	for b := range is {
		c := byte(b)
		is[b] = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c >= 0x80
	}
	return is
}()

// hasWord reports whether the text has the lower-case word, be it in a literal or a comment. The search is for the word's
// rarest letter, which is given by its place, in either case.
func hasWord(text, lower string, rarest int) bool {
	letter := lower[rarest]
	return hasWordBy(text, lower, rarest, letter) || hasWordBy(text, lower, rarest, letter-0x20)
}

func hasWordBy(text, lower string, rarest int, letter byte) bool {
	for at := 0; ; at++ {
		next := strings.IndexByte(text[at:], letter)
		if next < 0 {
			return false
		}
		at += next
		if wordAt(text, lower, at-rarest) {
			return true
		}
	}
}

func wordAt(text, lower string, start int) bool {
	end := start + len(lower)
	return start >= 0 && end <= len(text) && equalFold(text[start:end], lower) &&
		(start == 0 || !wordByte[text[start-1]]) && (end == len(text) || !wordByte[text[end]])
}

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
