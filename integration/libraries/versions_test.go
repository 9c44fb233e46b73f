package libraries

import (
	"os/exec"
	"slices"
	"strings"
	"sync"
)

// ran holds the module paths of the libraries whose tests have run, and "path version" of what is no module of this build.
var ran struct {
	sync.Mutex
	modules, others []string
}

// runs notes for the summary that a test exercises these modules.
func runs(modules ...string) {
	ran.Lock()
	defer ran.Unlock()
	ran.modules = append(ran.modules, modules...)
}

// generatedBy notes the same for a generator, which leaves its version in the head of what it wrote.
func generatedBy(path, name, head string) {
	version, _, _ := strings.Cut(head[strings.Index(head, name+" v")+len(name+" "):], "\n")
	ran.Lock()
	defer ran.Unlock()
	ran.others = append(ran.others, path+" "+version)
}

// summary says in one line which libraries were run, such as
// "libraries: github.com/jmoiron/sqlx v1.4.0, gorm.io/gorm v1.31.2". The go command knows the versions: the build
// information of a test binary does not name them.
func summary() string {
	ran.Lock()
	defer ran.Unlock()
	all := slices.Clone(ran.others)
	if len(ran.modules) > 0 {
		slices.Sort(ran.modules)
		args := append([]string{"list", "-m", "-f", "{{.Path}} {{.Version}}"}, slices.Compact(ran.modules)...)
		out, err := exec.Command("go", args...).Output()
		if err != nil {
			return "libraries: go list: " + err.Error()
		}
		all = append(all, strings.Split(strings.TrimSpace(string(out)), "\n")...)
	}
	if len(all) == 0 {
		return "libraries: none"
	}
	slices.Sort(all)
	return "libraries: " + strings.Join(all, ", ")
}
