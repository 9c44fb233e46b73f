package partition

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// redacted stands where a password stood, as in [url.URL.Redacted].
const redacted = "xxxxx"

// redactDSN returns dsn without its passwords, for people to read. It knows
// URLs, PostgreSQL's key=value form, go-sql-driver's user:password@net(addr)/db
// and the parameters of SQLite, and leans to hiding too much: a password may
// hold any of the characters that part a DSN, and a DSN that no driver can parse
// is shown too.
func redactDSN(dsn string) string {
	mask := make([]bool, len(dsn))
	for _, s := range secretSpans(dsn) {
		for i := s.from; i < s.to; i++ {
			mask[i] = true
		}
	}
	return applyMask(dsn, mask)
}

// redactText returns text, a driver's error about dsn, without the DSN's
// passwords: neither whole, nor percent-decoded or encoded or quoted, nor in
// such pieces of three bytes and more as a parser tears them into when it takes
// a character of the password for a delimiter.
func redactText(text, dsn string) string {
	mask := make([]bool, len(text))
	for _, s := range secretSpans(dsn) {
		for _, spelling := range spellings(dsn[s.from:s.to]) {
			markPieces(mask, text, spelling)
		}
	}
	return applyMask(text, mask)
}

// span is a part of a DSN that is secret.
type span struct{ from, to int }

// applyMask replaces each run of masked bytes.
func applyMask(text string, mask []bool) string {
	var b strings.Builder
	for i := range len(text) {
		switch {
		case !mask[i]:
			b.WriteByte(text[i])
		case i == 0 || !mask[i-1]:
			b.WriteString(redacted)
		}
	}
	return b.String()
}

var (
	keywordForm = regexp.MustCompile(`^[\w\s]*=`)
	urlForm     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	fileForm    = regexp.MustCompile(`^(file:|:memory:|[A-Za-z]:[\\/][^@]*$)`)
	// netForm is what follows a password that starts with two slashes, which
	// makes the user before it look like a scheme.
	netForm = regexp.MustCompile(`@(\w*\([^@]*|/[^@]*)$`)
	// hostList is an authority without user: names or bracketed addresses, each
	// with its port.
	hostList    = regexp.MustCompile(`^(\[[\w.:%]*\]|[\w.%-]*)(:\d+)?(,(\[[\w.:%]*\]|[\w.%-]*)(:\d+)?)*([/?#]|$)`)
	parameter   = regexp.MustCompile(`[?&;\s]([\w.-]+)\s*=`)
	nextParam   = regexp.MustCompile(`&[\w.-]+=`)
	secretKey   = regexp.MustCompile(`(?i)pass|pwd|secret|token|credential|accountkey|apikey|privatekey|(^|_|hex|text)key$|_salt$`)
	harmlessKey = regexp.MustCompile(`(?i)^allow|passfile`)
	// pragmaKey is the value of SQLite's _pragma=key('…') of an encrypted file.
	pragmaKey = regexp.MustCompile(`(?i)^\s*(hex|text)?(re)?key\b`)
	// inlineKey says that lib/pq's sslkey is the private key, not its file.
	inlineKey = regexp.MustCompile(`(?i)\bsslinline\s*=`)
)

// secretSpans returns what is secret in dsn, by the form it has, in no order
// and possibly overlapping.
func secretSpans(dsn string) []span {
	var spans []span
	switch start := len(urlForm.FindString(dsn)); {
	case start > 0 && (strings.HasPrefix(dsn, "postgres") || !netForm.MatchString(dsn)):
		spans = urlSpans(dsn, start)
	case keywordForm.MatchString(dsn):
		return keywordSpans(dsn)
	case !fileForm.MatchString(dsn):
		spans = userinfoSpans(dsn)
	}
	spans = append(spans, parameterSpans(dsn)...)
	return slices.DeleteFunc(spans, func(s span) bool { return s.from >= s.to })
}

// urlSpans takes all from the first colon to the last @, wherever that is: a
// password with a slash or question mark that nobody escaped ends there. Without
// an @, what is no list of hosts and ports is taken for a user and a password.
func urlSpans(dsn string, start int) []span {
	rest := dsn[start:]
	colon, at := strings.IndexByte(rest, ':'), strings.LastIndexByte(rest, '@')
	switch {
	case colon < 0 || at >= 0 && at < colon:
		return nil
	case at >= 0:
		return []span{{start + colon + 1, start + at}}
	case hostList.MatchString(rest):
		return nil
	}
	return []span{{start + colon + 1, len(dsn)}}
}

// userinfoSpans is urlSpans for user:password@net(addr)/db, and for the
// user/password@host of other houses.
func userinfoSpans(dsn string) []span {
	colon, at := strings.IndexByte(dsn, ':'), strings.LastIndexByte(dsn, '@')
	slash, paren := strings.IndexByte(dsn, '/'), strings.IndexByte(dsn, '(')
	switch {
	case at >= 0 && colon >= 0 && colon < at:
		return []span{{colon + 1, at}}
	case at >= 0 && slash > 0 && slash < at && dsn[0] != '.':
		return []span{{slash + 1, at}}
	case at >= 0 || colon < 0 || dsn[0] == '/' || dsn[0] == '.' || paren >= 0 && paren < colon:
		return nil
	}
	return []span{{colon + 1, len(dsn)}}
}

// parameterSpans finds the values of parameters that are secret, as in
// ?_auth_pass=….
func parameterSpans(dsn string) []span {
	var spans []span
	for _, m := range parameter.FindAllStringSubmatchIndex(dsn, -1) {
		s := span{m[1], len(dsn)}
		if next := nextParam.FindStringIndex(dsn[s.from:]); next != nil {
			s.to = s.from + next[0]
		}
		if isSecret(dsn[m[2]:m[3]], dsn[s.from:s.to], dsn) {
			spans = append(spans, s)
		}
	}
	return spans
}

// isSecret says whether a parameter of dsn is, by its name or by what else is
// known of it.
func isSecret(key, value, dsn string) bool {
	switch strings.ToLower(key) {
	case "sslkey":
		return inlineKey.MatchString(dsn)
	case "_pragma":
		return pragmaKey.MatchString(value)
	case "options": // -c my.password=…
		return secretKey.MatchString(value)
	}
	return secretKey.MatchString(key) && !harmlessKey.MatchString(key)
}

// plainKeys are the keywords whose values may be shown. In the key=value form
// everything else is hidden, since there a slip (pasword=…, or a space in a
// password) makes a keyword or a value of what was meant to be secret.
var plainKeys = regexp.MustCompile(`(?i)^(host|hostaddr|port|dbname|database|user|server|service|servicefile|passfile|` +
	`sslmode|sslcert|sslkey|sslrootcert|sslnegotiation|channel_binding|target_session_attrs|load_balance_hosts|` +
	`require_auth|krbsrvname|gssencmode|connect_timeout|application_name|fallback_application_name|search_path|options|` +
	`timezone|datestyle|client_encoding|statement_timeout|lock_timeout|idle_in_transaction_session_timeout|` +
	`default_transaction_read_only|default_query_exec_mode|statement_cache_capacity|description_cache_capacity|` +
	`binary_parameters|keepalives\w*|tcp_user_timeout|min_protocol_version|max_protocol_version)$`)

// keyword matches one key=value, or a word that is none. The value is quoted,
// with an escape for the quote, or runs to the next space, with an escape for
// that.
var keyword = regexp.MustCompile(`(?s)([^\s=;]*)\s*=\s*('(?:[^'\\]|\\.)*'?|(?:[^\s\\;]|\\.)*\\?)|[^\s;]+;*|;+(?:\s|$)`)

var bareKey = regexp.MustCompile(`(?i)^(password|passwd|pass|pwd|sslpassword)$`)

// keywordSpans hides all but the plain keywords and their values. Behind a
// hidden value it hides whole words, their equals signs included, until the next
// plain keyword: they may be the rest of a password with a space in it.
func keywordSpans(dsn string) []span {
	var spans []span
	hiding := false
	for _, m := range keyword.FindAllStringSubmatchIndex(dsn, -1) {
		key, value := "", span{m[0], m[1]}
		switch {
		case m[2] >= 0:
			key, value = dsn[m[2]:m[3]], span{m[4], m[5]}
		case bareKey.MatchString(dsn[m[0]:m[1]]):
			value.from = value.to // the equals sign was forgotten; what follows is the secret
		}
		switch {
		case plainKeys.MatchString(key) && !isSecret(key, dsn[value.from:value.to], dsn) && !unterminated(dsn[value.from:value.to]):
			hiding = false
			continue
		case hiding:
			last := &spans[len(spans)-1]
			if last.from == last.to {
				last.from = m[0]
			}
			last.to = m[1]
			continue
		}
		hiding = true
		spans = append(spans, unquote(dsn, value))
	}
	return slices.DeleteFunc(spans, func(s span) bool { return s.from >= s.to })
}

// closedQuote matches a quoted value that has its closing quote.
var closedQuote = regexp.MustCompile(`(?s)^'(?:[^'\\]|\\.)*'$`)

func unterminated(value string) bool {
	return strings.HasPrefix(value, "'") && !closedQuote.MatchString(value)
}

func unquote(dsn string, s span) span {
	value := dsn[s.from:s.to]
	if strings.HasPrefix(value, "'") {
		s.from++
	}
	if closedQuote.MatchString(value) {
		s.to--
	}
	return s
}

// spellings returns the ways in which a parser may quote a secret.
func spellings(secret string) []string {
	var all []string
	for _, plain := range []string{secret, unescape(secret), strings.ReplaceAll(unescape(secret), "+", " "), unbackslash(secret)} {
		quoted, ascii := strconv.Quote(plain), strconv.QuoteToASCII(plain)
		all = append(all, plain, quoted[1:len(quoted)-1], ascii[1:len(ascii)-1],
			url.QueryEscape(plain), url.PathEscape(plain), url.UserPassword("", plain).String()[1:])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// unescape decodes what is percent-encoded and leaves the rest, unlike net/url,
// which decodes all or nothing.
func unescape(s string) string {
	return percent.ReplaceAllStringFunc(s, func(code string) string {
		b, _ := strconv.ParseUint(code[1:], 16, 8) // the pattern admits nothing else
		return string([]byte{byte(b)})
	})
}

var percent = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

func unbackslash(s string) string { return backslash.ReplaceAllString(s, "$1") }

var backslash = regexp.MustCompile(`(?s)\\(.)`)

const (
	// minPiece is the shortest piece of a secret that is hidden: shorter ones
	// tell nothing, and would riddle the text.
	minPiece = 3
	// minInner is the shortest piece that is hidden although it neither starts
	// nor ends where a parser would cut.
	minInner = 6
)

// markPieces masks what of secret is in text.
func markPieces(mask []bool, text, secret string) {
	if len(secret) < minPiece {
		markWord(mask, text, secret)
		return
	}
	for i := range len(text) {
		for from := range len(secret) {
			if text[i] != secret[from] {
				continue
			}
			n := commonPrefix(text[i:], secret[from:])
			if n < minInner {
				n = cutAtEdges(secret, from, n)
			}
			for j := i; n >= minPiece && j < i+n; j++ {
				mask[j] = true
			}
		}
	}
}

// markWord masks a secret too short to be masked inside of words.
func markWord(mask []bool, text, secret string) {
	for i := range len(text) {
		end := i + len(secret)
		if secret == "" || !strings.HasPrefix(text[i:], secret) ||
			i > 0 && !isDelimiter(text[i-1]) || end < len(text) && !isDelimiter(text[end]) {
			continue
		}
		for j := i; j < end; j++ {
			mask[j] = true
		}
	}
}

// cutAtEdges returns how much of secret[from:from+n] is a piece that starts and
// ends where a parser would cut.
func cutAtEdges(secret string, from, n int) int {
	if !isEdge(secret, from) {
		return 0
	}
	for n > 0 && !isEdge(secret, from+n) {
		n--
	}
	return n
}

// isEdge says whether a parser may cut s at i: at either end, beside a
// delimiter, and behind the three bytes that net/url quotes of a bad escape.
func isEdge(s string, i int) bool {
	return i == 0 || i == len(s) || isDelimiter(s[i-1]) || isDelimiter(s[i]) || i >= 3 && s[i-3] == '%'
}

func isDelimiter(b byte) bool {
	return b < 0x80 && !('0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z')
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
