package sqlbulkhead_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The go directive has the compiler refuse a newer language, but not a newer standard library. What each release added is
// listed with the Go distribution. (Fields of structs are not looked at.)
func TestCoreUsesNothingThatIsNewerThanItsFloor(t *testing.T) {
	t.Parallel()
	newer := newerThanFloor(t)
	packages, importing := exported(t)
	for _, p := range packages {
		for _, use := range uses(t, p, importing) {
			if release := newer[use]; release != "" {
				t.Errorf("%s uses %s, which is of %s", p.ImportPath, use, release)
			}
		}
	}
}

const floor = 25

var apiLine = regexp.MustCompile(`^pkg (\S+)(?: \([^)]*\))?, (?:(?:func|var|const|type) (\w+)|method \(\*?(\w+)[^)]*\) (\w+))`)

// newerThanFloor is what was added to the standard library, as "errors.AsType" or "bytes.Buffer.Peek", and when.
func newerThanFloor(t *testing.T) map[string]string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	newer := make(map[string]string)
	for minor := floor + 1; ; minor++ {
		release := fmt.Sprintf("go1.%d", minor)
		list, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "api", release+".txt"))
		if err != nil {
			break
		}
		for line := range strings.Lines(string(list)) {
			m := apiLine.FindStringSubmatch(line)
			switch {
			case m == nil || strings.Contains(line, " struct, ") || strings.Contains(line, " interface, "):
			case m[2] != "":
				newer[m[1]+"."+m[2]] = release
			default:
				newer[m[1]+"."+m[3]+"."+m[4]] = release
			}
		}
	}
	if len(newer) == 0 {
		t.Skip("this Go has no lists of what its releases added")
	}
	return newer
}

type exportedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// exported returns the core's packages, and an importer of all that they import.
func exported(t *testing.T) (packages []exportedPackage, importing types.Importer) {
	t.Helper()
	out, err := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,DepOnly", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p exportedPackage
		if err := decoder.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		files[p.ImportPath] = p.Export
		if !p.DepOnly {
			packages = append(packages, p)
		}
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
	return packages, importer.ForCompiler(token.NewFileSet(), "gc", open)
}

// uses returns what a package uses of the standard library.
func uses(t *testing.T, p exportedPackage, importing types.Importer) (names []string) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	if _, err := (&types.Config{Importer: importing}).Check(p.ImportPath, fset, files, info); err != nil {
		t.Fatal(err)
	}
	for _, object := range info.Uses {
		if object.Pkg() != nil {
			names = append(names, object.Pkg().Path()+"."+receiver(object)+object.Name())
		}
	}
	return names
}

// receiver is the type of a method, and a dot.
func receiver(object types.Object) string {
	f, ok := object.(*types.Func)
	if !ok || f.Signature().Recv() == nil {
		return ""
	}
	of := f.Signature().Recv().Type()
	if p, ok := of.(*types.Pointer); ok {
		of = p.Elem()
	}
	if named, ok := of.(*types.Named); ok {
		return named.Obj().Name() + "."
	}
	return ""
}
