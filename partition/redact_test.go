package partition

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
)

func TestShownDSNKeepsAllButThePassword(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		// URLs
		"postgres://gina:pw@db:5432/base?sslmode=disable":       "postgres://gina:xxxxx@db:5432/base?sslmode=disable",
		"postgres://gina:p%40w@a:1,b:2/base":                    "postgres://gina:xxxxx@a:1,b:2/base",
		"postgres://gina:p@s/s:w?r#d@db/base":                   "postgres://gina:xxxxx@db/base",
		"postgres://gina:pw@[::1]:5432/base":                    "postgres://gina:xxxxx@[::1]:5432/base",
		"postgres://gina@db/base":                               "postgres://gina@db/base",
		"postgres://gina:@db/base":                              "postgres://gina:@db/base",
		"postgres://db:5432/base":                               "postgres://db:5432/base",
		"postgres://a:1,[::1]:2/base":                           "postgres://a:1,[::1]:2/base",
		"postgres:///base?host=%2Frun%2Fpg&user=gina":           "postgres:///base?host=%2Frun%2Fpg&user=gina",
		"postgres://gina:pw@/base?host=/run/pg":                 "postgres://gina:xxxxx@/base?host=/run/pg",
		"postgres://db/base?user=gina&password=p@w:&sslmode=no": "postgres://db/base?user=gina&password=xxxxx&sslmode=no",
		"postgres://db/base?sslpassword=a#b&passfile=/x":        "postgres://db/base?sslpassword=xxxxx&passfile=/x",
		"sqlserver://sa:pw@db?database=base":                    "sqlserver://sa:xxxxx@db?database=base",
		// key=value
		"host=db user=gina password=pw dbname=base":            "host=db user=gina password=xxxxx dbname=base",
		"password = 'p w' host = db":                           "password = 'xxxxx' host = db",
		`host=db password='it\'s \\ a pw' dbname='my base'`:    `host=db password='xxxxx' dbname='my base'`,
		`password=p\ w host=db`:                                `password=xxxxx host=db`,
		"host=db password='' user=gina":                        "host=db password='' user=gina",
		"host=db password=@/:#?& user=gina":                    "host=db password=xxxxx user=gina",
		"PASSWORD=pw HOST=db":                                  "PASSWORD=xxxxx HOST=db",
		"server=db;user id=sa;password=pw;database=base":       "server=db;xxxxx;database=base",
		"host=db sslpassword=pw sslkey=/k passfile=/p port=54": "host=db sslpassword=xxxxx sslkey=/k passfile=/p port=54",
		"host=db sslinline=true sslkey='a b' user=gina":        "host=db sslinline=xxxxx user=gina",
		"postgres://db/base?sslinline=true&sslkey=pw&a=b":      "postgres://db/base?sslinline=true&sslkey=xxxxx&a=b",
		"host=db options='-c my.secret=pw' user=gina":          "host=db options='xxxxx' user=gina",
		"postgres://db/base?options=-c%20a.token%3Dpw&a=b":     "postgres://db/base?options=xxxxx&a=b",
		"host=db options='-c geqo=off' user=gina":              "host=db options='-c geqo=off' user=gina",
		// slips in key=value
		"host=db password=two words user=gina":     "host=db password=xxxxx user=gina",
		"host=db password=two a=b words user=gina": "host=db password=xxxxx user=gina",
		"host=db pasword=pw user=gina":             "host=db pasword=xxxxx user=gina",
		"host=db password pw user=gina":            "host=db password xxxxx user=gina",
		"host=db password='never closed user=gina": "host=db password='xxxxx",
		"DATABASE_URL=postgres://gina:pw@db/base":  "DATABASE_URL=xxxxx",
		// user:password@net(addr)/db
		"gina:pw@tcp(db:3306)/base?parseTime=true":    "gina:xxxxx@tcp(db:3306)/base?parseTime=true",
		"gina:p@s/s:w(o)r?d#@tcp(db:3306)/base":       "gina:xxxxx@tcp(db:3306)/base",
		"gina://pw@tcp(db:3306)/base":                 "gina:xxxxx@tcp(db:3306)/base",
		"gina@unix(/run/my.sock)/base":                "gina@unix(/run/my.sock)/base",
		"tcp(db:3306)/base?allowNativePasswords=true": "tcp(db:3306)/base?allowNativePasswords=true",
		"gina:pw@/base":                               "gina:xxxxx@/base",
		"/base":                                       "/base",
		"gina/pw@db:1521/service":                     "gina/xxxxx@db:1521/service",
		// SQLite
		"file:app.db?_auth&_auth_user=gina&_auth_pass=pw&_auth_salt=s": "file:app.db?_auth&_auth_user=gina&_auth_pass=xxxxx&_auth_salt=xxxxx",
		"file:/data/a@b.db?cache=shared":                               "file:/data/a@b.db?cache=shared",
		"app.db?vfs=xts&hexkey=pw&x=y":                                 "app.db?vfs=xts&hexkey=xxxxx&x=y",
		"app.db?textkey=pw":                                            "app.db?textkey=xxxxx",
		"app.db?_pragma=key('pw')&_pragma=foreign_keys(1)":             "app.db?_pragma=xxxxx&_pragma=foreign_keys(1)",
		"app.db?_pragma=foreign_keys(1)&_pragma=hexrekey(pw)":          "app.db?_pragma=foreign_keys(1)&_pragma=xxxxx",
		"app.db?_key=pw":                                               "app.db?_key=xxxxx",
		":memory:":                                                     ":memory:",
		`C:\data\app.db`:                                               `C:\data\app.db`,
		"./app.db":                                                     "./app.db",
		// no form at all
		"":                          "",
		"gina:pw db/base":           "gina:xxxxx",
		"postgres://gina:pw db/b":   "postgres://gina:xxxxx",
		"postgres://gina:pw/base":   "postgres://gina:xxxxx",
		"postgres:/gina:pw@db/base": "postgres:xxxxx@db/base",
		"postgres//gina:pw@db/base": "postgres//gina:xxxxx@db/base",
		`"postgres://gina:pw@db/b"`: `"postgres:xxxxx@db/b"`,
	} {
		if got := redactDSN(dsn); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", dsn, got, want)
		}
	}
}

func TestDriverErrorLosesThePasswordInEverySpelling(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ dsn, text, want string }{
		{"postgres://gina:Wall@flo/wer@db/base", `invalid port ":Wall" after host`, `invalid port ":xxxxx" after host`},
		{"postgres://gina:Wall@flo/wer@db/base", `lookup flo: no such host`, `lookup xxxxx: no such host`},
		{"postgres://gina:Wall@flo/wer@db/base", `got "Wall@flo" and "flo/wer"`, `got "xxxxx" and "xxxxx"`},
		{"postgres://gina:Wall%40flower@db/base", `login with Wall@flower or Wall%40flower`, `login with xxxxx or xxxxx`},
		{"postgres://gina:Wall%zzflower@db/base", `invalid URL escape "%zz"`, `invalid URL escape "xxxxx"`},
		{"postgres://gina:Wall+flower@db/base", `login with Wall flower`, `login with xxxxx`},
		{`password='Wall"flow er' host=db`, `parse "password='Wall\"flow er' host=db"`, `parse "password='xxxxx' host=db"`},
		{`password='it\'s \\x' host=db`, `key it's \x`, `key xxxxx`},
		{"gina:Wall)flower@tcp(db)/base", `unknown network "Wall)flower@tcp"`, `unknown network "xxxxx@tcp"`},
		{"gina:Wallflower1234@tcp(db)/base", `truncated: "lflower12"`, `truncated: "xxxxx"`},
		// Too short to be looked for inside of words.
		{"postgres://gina:a@db/base", `bad data in "postgres://gina:a@db/base"`, `bad data in "postgres://gina:xxxxx@db/base"`},
		{"postgres://gina:pw@db/base", `spwn failed for pw`, `spwn failed for xxxxx`},
		// Nothing secret, nothing lost.
		{"postgres://gina@db/base", `cannot parse postgres://gina@db/base`, `cannot parse postgres://gina@db/base`},
		{"postgres://gina:@db/base", `cannot parse postgres://gina:@db/base`, `cannot parse postgres://gina:@db/base`},
		{"postgres://gina:Wallflower@db/base", `dial tcp: lookup db: no such host`, `dial tcp: lookup db: no such host`},
		{"", "unknown driver", "unknown driver"},
	} {
		if got := redactText(c.text, c.dsn); got != c.want {
			t.Errorf("%s: %s\ngot  %s\nwant %s", c.dsn, c.text, got, c.want)
		}
	}
}

// pieces returns what of secret a parser could tear out: what lies between two
// places beside its delimiters, of three bytes and more.
func pieces(secret string) []string {
	var all []string
	for i := range len(secret) {
		for j := i + minPiece; j <= len(secret); j++ {
			if piece := strings.TrimSpace(secret[i:j]); isEdge(secret, i) && isEdge(secret, j) && len(piece) >= minPiece {
				all = append(all, piece)
			}
		}
	}
	return all
}

// randomPassword shares no three letters with the DSNs and errors around it.
func randomPassword(r *rand.Rand) string {
	const letters, delimiters = "QZJKVWXY", "@/:?#&= %'\"\\;()[]{}+,<>!$*`|^~."
	b := []byte{letters[r.IntN(len(letters))]}
	for range 2 + r.IntN(16) {
		from := letters
		if r.IntN(3) == 0 {
			from = delimiters
		}
		b = append(b, from[r.IntN(len(from))])
	}
	return string(append(b, letters[r.IntN(len(letters))]))
}

// dsnsWith returns DSNs with the password, well-formed and not.
func dsnsWith(password string) []string {
	quoted := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(password)
	return []string{
		"postgres://gina:" + password + "@db:5432/base?sslmode=disable",
		"postgres://gina:" + url.QueryEscape(password) + "@db:54x32/base",
		"postgres://db/base?user=gina&password=" + url.QueryEscape(password) + "&sslmode=nope",
		"postgresql:/gina:" + password + "@db/base",
		"host=db user=gina password='" + quoted + "' sslmode=nope",
		"host=db user=gina password='" + password + "' sslmode=nope",
		"host=db user=gina password = '" + password,
		"host=db user=gina password=" + password + " port=12x",
		"host=db user=gina pasword=" + password + " port=12x",
		"host=db user=gina password " + password,
		"gina:" + password + "@tcp(db:3306)/base?parseTime=maybe",
		"gina:" + password + "@tcp(db:3306/base",
		"gina:" + password + "@db:3306",
	}
}

// errorsAbout returns what net/url says of dsn, and what the tokenizers of
// drivers quote of it: the whole, and what they take for a part.
func errorsAbout(dsn string) []string {
	texts := []string{dsn, fmt.Sprintf("%q", dsn), fmt.Sprintf("%+q", dsn)}
	if _, err := url.Parse(dsn); err != nil {
		texts = append(texts, err.Error())
	}
	for _, delimiters := range []string{"@", "/", ":", "?&=", " =", "()", "@/:?#& ", "'\\ "} {
		for _, part := range strings.FieldsFunc(dsn, func(r rune) bool { return strings.ContainsRune(delimiters, r) }) {
			texts = append(texts, fmt.Sprintf("part %q is `%s`", part, part))
			if plain, err := url.PathUnescape(part); err == nil {
				texts = append(texts, "part "+plain)
			}
		}
	}
	return texts
}

func checkNoPieceSurvives(t *testing.T, password string) {
	t.Helper()
	secret := pieces(password)
	for _, dsn := range dsnsWith(password) {
		for _, text := range append(errorsAbout(dsn), dsn) {
			out := redactText(text, dsn)
			if text == dsn {
				out += "\n" + redactDSN(dsn)
			}
			for _, piece := range secret {
				if strings.Contains(out, piece) {
					t.Fatalf("password %s\ndsn  %s\ntext %s\ngave %s\nwith %q in it", password, dsn, text, out, piece)
				}
			}
		}
	}
}

func TestNoPieceOfAPasswordSurvives(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	for range 8 {
		checkNoPieceSurvives(t, randomPassword(r))
	}
}

func FuzzNoPieceOfAPasswordSurvives(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) { checkNoPieceSurvives(t, randomPassword(rand.New(rand.NewPCG(a, b)))) })
}

func FuzzRedactionNeverPanics(f *testing.F) {
	f.Add("postgres://a:b@c/d", "parse: b")
	f.Add("password='a\\", "\xff%")
	f.Fuzz(func(_ *testing.T, dsn, text string) {
		redactDSN(dsn)
		redactText(text, dsn)
		redactText(dsn, dsn)
	})
}
