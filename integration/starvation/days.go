package starvation

import (
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

const (
	// recovery is how soon after the server is back every pool must serve.
	recovery = 2 * time.Second
	// aftermath is long enough for a short report that began within recovery.
	aftermath = recovery + 1500*time.Millisecond

	long, short = 2 * time.Second, time.Second // reports
	hang        = 3500 * time.Millisecond      // longer than any call may take then
)

// day is one kind of trouble.
type day struct {
	name, text string
	pools      pools
	report     time.Duration // how long one takes
	play       func(s *scene)

	// staged reports whether the server has what the day needs.
	staged func(Server) bool
	lacks  string // what is said if not

	other   bool // reporting is on a second server
	network bool // the way to the server is the one that fails
}

// reclaiming takes back what is held for longer than anybody may.
var reclaiming = standard.
	with(workload.Reporting, maxHold).
	with(workload.Batch, maxHold)

func maxHold(c *partition.PoolConfig) { c.MaxHold = 1500 * time.Millisecond }

func always(Server) bool { return true }

// impatient has timeouts that end while a server hangs.
var impatient = standard.
	with(workload.OLTP, statementTimeout(500*time.Millisecond)).
	with(workload.Reporting, statementTimeout(1500*time.Millisecond)).
	with(workload.Batch, statementTimeout(500*time.Millisecond))

func statementTimeout(d time.Duration) func(*partition.PoolConfig) {
	return func(c *partition.PoolConfig) { c.StatementTimeout = d }
}

var days = []day{
	{
		name:  "Monday morning",
		text:  "40 analysts press Run, each again and again; a report takes 2 s.",
		pools: standard, report: long, staged: always,
		play: func(s *scene) {
			s.analysts()
			s.wait(4 * time.Second)
		},
	},
	{
		name:  "Out for lunch",
		text:  "40 workers of a batch job each open a transaction, write to it, and leave it open.",
		pools: standard, report: long, staged: always,
		play: func(s *scene) {
			s.crowd(40, workload.Batch, 0, s.lunch)
			s.wait(4 * time.Second)
		},
	},
	{
		name:  "Slow readers",
		text:  "40 exports stream a million rows each to readers that take 10 ms for a hundred.",
		pools: standard, report: long, staged: always,
		play: func(s *scene) {
			s.crowd(40, workload.Reporting, 0, s.export)
			s.wait(4 * time.Second)
		},
	},
	{
		name:  "Leaks",
		text:  "Ten times a second a report does not close its rows, and as often a job neither commits nor rolls back; their pools take back what is held for 1.5 s.",
		pools: reclaiming, report: long, staged: always,
		play: func(s *scene) {
			s.crowd(20, workload.Reporting, 2*time.Second, s.leakRows)
			s.crowd(20, workload.Batch, 2*time.Second, s.leakTx)
			s.wait(4 * time.Second)
		},
	},
	{
		name:  "The hung server",
		text:  "Beside the analysts the server freezes in the middle of their statements for 3.5 s, with every socket open.",
		pools: impatient, report: short, staged: can[pauser], lacks: "a server that can be paused",
		play: func(s *scene) {
			server := s.stage.server.(pauser)
			s.amid("frozen", hang, func() { server.Pause(s.t) }, func() { server.Resume(s.t) })
		},
	},
	{
		name:  "The network goes",
		text:  "Beside the analysts the network swallows everything for 3.5 s; afterwards it has forgotten its connections.",
		pools: impatient, report: short, network: true, staged: can[networker], lacks: "a network that can be disconnected",
		play: func(s *scene) {
			server := s.stage.server.(networker)
			s.amid("disconnected", hang, func() { server.Disconnect(s.t) }, func() { server.Reconnect(s.t) })
		},
	},
	{
		name:  "Restart",
		text:  "Beside the analysts the server is stopped in good order and started again.",
		pools: standard, report: short, staged: can[stopper], lacks: "a server that can be stopped",
		play: func(s *scene) {
			server := s.stage.server.(stopper)
			s.amid("stopped", time.Second, func() { server.Stop(s.t) }, func() { server.Start(s.t) })
		},
	},
	{
		name:  "Crash",
		text:  "Beside the analysts the server is killed and started again.",
		pools: standard, report: short, staged: can[killer], lacks: "a server that can be killed",
		play: func(s *scene) {
			server := s.stage.server.(killer)
			s.amid("killed", time.Second, func() { server.Kill(s.t) }, func() { server.Start(s.t) })
		},
	},
	{
		name:  "Cut connections",
		text:  "Beside the analysts an operator ends every session of the service, one after the other.",
		pools: standard, report: short, staged: always,
		play: func(s *scene) {
			s.analysts()
			s.probes()
			s.wait(time.Second)
			s.during("cutting", s.cutAll)
			s.wait(aftermath)
		},
	},
	{
		name:  "The replica dies",
		text:  "Reporting has a server of its own, which is killed and started again; one pool for all is on that one server.",
		pools: standard, report: short, other: true,
		staged: func(s Server) bool { return can[replicator](s) && can[killer](s) },
		lacks:  "a second server that can be killed",
		play: func(s *scene) {
			server := s.other.server.(killer)
			s.analysts()
			s.wait(time.Second)
			s.away(func() {
				server.Kill(s.t)
				s.wait(1500 * time.Millisecond)
				server.Start(s.t)
			})
			s.wait(aftermath)
		},
	},
	{
		name:  "Storm of cancels",
		text:  "200 reports a second are begun and cancelled 200 to 400 ms later, for 10 s.",
		pools: standard, report: long, staged: always,
		play: func(s *scene) {
			if s.reg == nil {
				s.storm(5 * time.Second) // long enough to suffer
				return
			}
			s.storm(10 * time.Second)
		},
	},
}

// amid does a fault to the server beside the analysts, and undoes it after a while.
func (s *scene) amid(name string, long time.Duration, do, undo func()) {
	s.analysts()
	s.probes()
	s.wait(time.Second)
	s.during(name, func() {
		do()
		s.wait(long)
		undo()
	})
	s.wait(aftermath)
}

// cutAll ends the sessions that are there at the begin, one every 50 ms.
func (s *scene) cutAll() {
	sessions, err := s.stage.sessions(s.ctx)
	if err != nil {
		s.t.Errorf("cannot list the sessions: %v", err)
	}
	for id := range sessions {
		if err := s.stage.kill(id); err != nil {
			s.t.Errorf("cannot end a session: %v", err)
		}
		s.wait(50 * time.Millisecond)
	}
}
