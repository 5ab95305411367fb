package systemdtest

import "testing"

// Case is one behaviour that every manager must show. Run fails t where it does
// not; it leaves the environment as it found it.
type Case struct {
	Name string
	Run  func(t *testing.T, env Env)
}

// Contract runs every case as a subtest, each in an environment of its own from
// open. The manager of the environment must be running.
func Contract(t *testing.T, open func(t *testing.T) Env) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) { c.Run(t, open(t)) })
	}
}

// Cases are the cases of the contract, for those who must prepare each in a way
// of their own.
func Cases() []Case {
	var cases []Case
	for _, group := range []map[string]func(*kit){
		definitions(), naming(), starts(), troubles(), jobs(), changes(), connections(), reading(), listing(), linking(),
	} {
		for name, run := range group {
			cases = append(cases, Case{name, func(t *testing.T, env Env) { run(newKit(t, env)) }})
		}
	}
	sortCases(cases)
	return cases
}
