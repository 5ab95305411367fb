package arch

// layer says what a package is for, and so what it may import.
type layer string

const (
	words    layer = "words"    // types and pure functions on them
	pure     layer = "pure"     // decisions: no disk, no clock, no goroutine
	loops    layer = "loops"    // one goroutine that owns a state
	adapters layer = "adapters" // the only places that touch the world
	ground   layer = "ground"   // the floors of the mesh, one on another: the only places that speak NATS
	fakes    layer = "fakes"    // stand-ins and the suites that hold them to the real thing
	assembly layer = "assembly" // joins the layers below into one process
	command  layer = "command"  // the program
	checks   layer = "checks"   // test/: imports what it likes, is imported by tests alone
)

// below lists the layers that a layer may import. Loops and adapters do not know
// each other: a loop declares the interface, the assembly hands the adapter in.
var below = map[layer][]layer{
	words:    {words},
	pure:     {words, pure},
	loops:    {words, pure},
	adapters: {words, pure},
	ground:   {words, pure, ground},
	fakes:    {words, pure, adapters, ground},
	assembly: {words, pure, loops, adapters, ground, assembly},
	command:  {words, pure, adapters, ground, assembly, command},
}

// row is what one package may import of stead. Its tests may also import every
// package of words and pure, fakes, test/lab, and what tests names.
type row struct {
	layer layer
	dir   string
	may   string // folders below the root, separated by spaces
	tests string
}

// table is the import table. A package that is not in it fails, and so does a
// row without a package.
var table = []row{
	{words, "host/fault", "", ""},
	{words, "host/unit", "host/fault", ""},
	{words, "host/shape", "host/fault host/unit", ""},
	{words, "host/report", "host/unit", ""},

	{words, "mesh/subject", "host/fault", ""},
	{words, "seats", "host/fault host/shape mesh/subject", ""},
	{words, "modules", "host/fault mesh/subject seats", ""},
	{words, "mesh/wire", "host/report host/shape mesh/subject modules seats", ""},

	{pure, "host/plan", "host/fault host/report host/shape host/unit", ""},
	{pure, "host/install", "host/fault host/unit", "host/disk host/systemd"},
	{pure, "mesh/seal", "host/fault", ""},
	{pure, "host/accept", "host/fault mesh/seal mesh/wire", ""},
	{pure, "controller/assign", "host/fault host/shape host/unit mesh/subject mesh/wire modules seats", ""},
	{pure, "controller/admit", "controller/assign host/fault host/shape host/unit mesh/subject mesh/wire modules seats", ""},

	{loops, "host/follow", "host/accept host/fault host/report host/shape host/unit mesh/subject mesh/wire", "host/ledger"},
	{loops, "host/outbox", "host/fault host/report mesh/subject mesh/wire", "host/spool"},
	{loops, "runtime/duty", "host/fault mesh/seal mesh/subject mesh/wire modules seats", ""},
	{loops, "host/reconcile", "host/fault host/plan host/report host/shape host/unit", "host/account host/disk host/ledger host/systemd"},

	{loops, "runtime/tool", "host/fault host/unit mesh/subject mesh/wire modules seats", "host/spool"},

	{adapters, "host/systemd", "host/fault host/unit", "test/odd"},
	{adapters, "host/disk", "host/fault host/install host/plan host/shape host/unit", "host/account"},
	{adapters, "host/ledger", "host/accept host/fault host/plan host/shape host/unit", ""},
	{adapters, "host/spool", "host/fault mesh/wire", ""},
	{adapters, "host/folder", "host/fault host/shape host/unit", ""},
	{adapters, "host/journal", "host/fault host/unit seats", "mesh mesh/identity test/odd"},
	{adapters, "host/account", "host/fault host/plan host/report host/unit", "host/systemd host/ledger"},
	{adapters, "host/become", "host/fault", ""},
	{adapters, "host/verify", "host/unit", "host/become"},
	{adapters, "runtime/escalate", "host/fault host/shape host/unit", "host/systemd"},

	{ground, "mesh/replace", "host/fault", ""},
	{ground, "mesh/notify", "", ""},
	{ground, "mesh/identity", "host/fault mesh/replace mesh/subject", "mesh/server"},
	{ground, "mesh/server", "host/fault mesh/identity", ""},
	{ground, "mesh", "host/fault mesh/identity mesh/subject", ""},
	{ground, "mesh/bucket", "host/fault mesh", "mesh/identity"},
	{ground, "mesh/trail", "host/fault mesh mesh/wire", "mesh/identity"},
	{ground, "controller/state", "controller/assign host/fault mesh/replace host/report host/shape mesh mesh/bucket mesh/seal mesh/subject mesh/wire modules seats", "mesh/identity"},
	{ground, "mesh/client", "host/fault mesh mesh/subject mesh/wire", ""},

	{fakes, "host/systemd/systemdtest", "host/fault host/install host/unit", ""},
	{fakes, "mesh/meshtest", "mesh mesh/identity mesh/server", ""},

	{assembly, "host/delegate", "host/become host/disk host/fault host/install host/plan host/shape host/unit", ""},
	{assembly, "host/setup", "host/fault mesh/replace host/systemd host/unit", ""},
	{assembly, "host", "host/accept host/account host/become host/delegate host/disk host/fault host/folder host/follow host/journal host/ledger mesh/notify mesh/replace host/outbox host/plan " +
		"host/reconcile host/report host/shape host/spool host/systemd host/unit host/verify mesh mesh/identity mesh/subject mesh/wire", "mesh/meshtest"},

	{assembly, "controller", "controller/admit controller/assign controller/state host/fault mesh/notify mesh/replace host/report host/shape host/unit " +
		"mesh mesh/bucket mesh/identity mesh/seal mesh/server mesh/subject mesh/trail mesh/wire modules seats", "mesh/client"},

	{assembly, "modules/systemd", "host/fault host/shape host/unit mesh/wire modules runtime/escalate runtime/tool seats", "host/journal host/systemd mesh/identity test/odd"},

	{assembly, "runtime/server", "host/account host/fault host/journal mesh/notify mesh/replace host/spool host/systemd host/unit mesh mesh/identity mesh/subject mesh/wire modules modules/systemd " +
		"runtime/duty runtime/escalate runtime/tool seats", "mesh/seal"},

	{command, "cmd/stead", "cmd/stead/cli", ""},
	{command, "cmd/stead/cli", "cmd/stead/contexts controller host host/delegate host/fault host/folder host/report host/setup host/shape host/unit " +
		"mesh mesh/client mesh/identity mesh/subject mesh/wire runtime/escalate runtime/server seats", ""},
	{command, "cmd/stead/contexts", "host/fault mesh/replace mesh/identity mesh/subject mesh/wire", ""},

	{checks, "test/arch", "", ""},
	{checks, "test/lab", "", ""},
	{checks, "test/odd", "", ""},
	{checks, "test/lab/node", "", ""},
	{checks, "test/system", "", ""},
	{checks, "test/bench", "", ""},
	{checks, "test/cases", "", ""},
	{checks, "test/demo", "", ""},
	{checks, "test/mutants", "", ""},
}

// growing are rows whose package is on its way. It is empty when the tree is
// whole.
var growing []string

// foreign is where packages of one other module may be imported.
type foreign struct {
	path string // a module or a folder of it; the longest that fits decides
	may  string // packages of stead; "*" is all
	test string // packages whose tests may besides; "*" is all
}

// outside are all modules that stead stands on. Programs and packages below
// test/ may import every one of them.
var outside = []foreign{
	{"github.com/godbus/dbus/v5", "host/systemd host/systemd/systemdtest", ""},
	{"github.com/coreos/go-systemd/v22", "host/systemd host/systemd/systemdtest", ""},
	{"github.com/coreos/go-systemd/v22/daemon", "mesh/notify", ""},
	{"github.com/coreos/go-systemd/v22/activation", "host runtime/server", ""},
	{"github.com/nats-io", "mesh mesh/bucket mesh/identity mesh/server mesh/trail", "controller/state"},
	{"go.etcd.io/bbolt", "host/ledger host/spool", ""},
	{"github.com/fsnotify/fsnotify", "host/disk host/folder", ""},
	{"go.yaml.in/yaml/v3", "host/shape cmd/stead/cli", ""},
	{"github.com/santhosh-tekuri/jsonschema/v6", "", "runtime/tool"},
	{"github.com/spf13/cobra", "cmd/stead/cli", ""},
	{"github.com/spf13/pflag", "cmd/stead/cli", ""},
	{"github.com/jedib0t/go-pretty/v6", "cmd/stead/cli", ""},
	{"golang.org/x/sys/unix", "cmd/stead cmd/stead/contexts host host/become host/delegate host/disk host/folder host/journal host/ledger host/plan host/systemd mesh/identity mesh/server runtime/escalate", "*"},
	{"golang.org/x/sync", "host host/outbox host/reconcile runtime/server", "*"},
	{"golang.org/x/tools/txtar", "", "*"},
	{"github.com/rogpeppe/go-internal", "", "cmd/stead cmd/stead/cli"},
	{"github.com/rogpeppe/go-internal/diff", "host/plan", ""},
	{"github.com/stretchr/testify", "host/systemd/systemdtest mesh/meshtest", "*"},
	{"github.com/google/go-cmp", "host/systemd/systemdtest", "*"},
	{"go.uber.org/goleak", "", "*"},
}

// impure are packages of the standard library that words and pure packages do
// not import, since with them they could act or look.
var impure = []string{"os", "net", "syscall", "log", "os/exec", "os/signal", "os/user", "net/http", "log/slog", "io/ioutil", "plugin", "testing"}
