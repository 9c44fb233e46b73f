package libraries

import (
	"os/exec"
	"slices"
	"strings"
	"sync"
)

// ran holds the module paths of the libraries whose tests have run.
var ran struct {
	sync.Mutex
	modules []string
}

// runs notes for the summary that a test exercises these modules.
func runs(modules ...string) {
	ran.Lock()
	defer ran.Unlock()
	ran.modules = append(ran.modules, modules...)
}

// summary says in one line which libraries were run, such as
// "libraries: github.com/jmoiron/sqlx v1.4.0, gorm.io/gorm v1.31.2". The go command knows the versions: the build
// information of a test binary does not name them.
func summary() string {
	ran.Lock()
	defer ran.Unlock()
	if len(ran.modules) == 0 {
		return "libraries: none"
	}
	slices.Sort(ran.modules)
	args := []string{"list", "-m", "-f", "{{.Path}} {{.Version}}"}
	out, err := exec.Command("go", append(args, slices.Compact(ran.modules)...)...).Output()
	if err != nil {
		return "libraries: " + err.Error()
	}
	return "libraries: " + strings.Join(strings.Split(strings.TrimSpace(string(out)), "\n"), ", ")
}
