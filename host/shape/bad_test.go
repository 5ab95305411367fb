package shape

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

const (
	nameCure  = "use 1 to 63 of a-z, 0-9 and -, with no - at either end"
	gramCure  = "use a name by systemd's grammar, such as web.service"
	bigCure   = "put large data into a file of its own that the unit reads"
	boolCure  = ": only true and false, without quotes, are truth values"
	ownCure   = "declare another unit; this one is not changed through stead"
	fieldCure = "the fields of shape service are shape, name, unit, nodes, labels, all, scope, content, dropins, ensure, state, enabled, masked, on_change, triggers, daemon_reload, timeout, provider, on_withdraw, sensitive"
	oneCure   = "declare at most one of nodes, labels and all"
)

// bad is one document that is refused, and the one problem that it has.
type bad struct {
	doc  string
	line int
	path string
	rule string
	cure string
}

func refused(t *testing.T, cases map[string]bad) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			services, problems := Parse("mesh/web.yaml", []byte(c.doc))
			require.Empty(t, services)
			require.Empty(t, cmp.Diff(Problems{{"mesh/web.yaml", c.line, c.path, c.rule, c.cure}}, problems))
			for _, s := range []string{c.rule, c.cure} {
				require.NotEmpty(t, s)
			}
		})
	}
}

func TestParseRefusesBadFields(t *testing.T) {
	refused(t, map[string]bad{
		"unknown field":          {head + "ensure: running\nexec: x\n", 4, "web.exec", "unknown field", fieldCure},
		"misspelt field":         {head + "ensrue: running\nenabled: true\n", 3, "web.ensrue", "unknown field", "did you mean ensure?"},
		"other case":             {head + "Enabled: true\nensure: running\n", 3, "web.Enabled", "unknown field", "did you mean enabled?"},
		"misspelt new field":     {head + "ensure: running\nsensitve: true\n", 4, "web.sensitve", "unknown field", "did you mean sensitive?"},
		"reload is no word":      {head + "ensure: running\ndaemon_reload: nevr\n", 4, "web.daemon_reload", `"nevr" is no value of this field`, "did you mean never?"},
		"reload is a truth":      {head + "ensure: running\ndaemon_reload: false\n", 4, "web.daemon_reload", "the truth value false where a text is wanted", "put it in quotes: \"false\""},
		"another provider":       {head + "ensure: running\nprovider: launchd\n", 4, "web.provider", `"launchd" is no provider: units are applied by systemd, and others cannot be registered yet`, "write auto or systemd, or leave it out"},
		"sensitive is no truth":  {head + "ensure: running\nsensitive: \"yes\"\n", 4, "web.sensitive", `the text "yes" where true or false is wanted`, "write true" + boolCure},
		"a field that is hidden": {head + "ensure: running\n\"en\\e[2Jsure\": x\n", 4, `web."en\x1b[2Jsure"`, "unknown field", fieldCure},
		"null unknown field":     {head + "ensure: running\nfoo: ~\n", 4, "web.foo", "unknown field", fieldCure},
		"key that is a list":     {head + "ensure: running\n? [a]\n: b\n", 4, "web", "a field is named by a list", "name it by one word"},
		"key that is a number":   {head + "ensure: running\n1: b\n", 4, "web.1", "unknown field", fieldCure},
		"doubled field":          {head + "ensure: running\nenabled: true\nensure: stopped\n", 5, "web.ensure", "declared twice, first on line 3", "delete one of them"},
		"doubled null field":     {head + "ensure: ~\nenabled: true\nensure: stopped\n", 5, "web.ensure", "declared twice, first on line 3", "delete one of them"},
		"doubled drop-in":        {head + "dropins:\n  a.conf: x\n  b.conf: x\n  \"a.conf\": y\n", 6, "web.dropins.a.conf", "declared twice, first on line 4", "delete one of them"},
		"shape missing":          {"name: web\nensure: running\n", 1, "web.shape", "missing", "write shape: service, or shape: file"},
		"shape null":             {"shape: ~\nname: web\nensure: running\n", 1, "web.shape", "missing", "write shape: service, or shape: file"},
		"shape unknown":          {"shape: cron\nname: web\nensure: running\n", 1, "web.shape", `this version's vocabulary has no shape "cron"`, "write shape: service or file"},
		"shape misspelt":         {"shape: Service\nname: web\nensure: running\n", 1, "web.shape", `this version's vocabulary has no shape "Service"`, "did you mean service?"},
		"declares nothing":       {head + "timeout: 3m\n", 1, "web", "it declares nothing", "declare at least one of content, dropins, ensure, enabled, masked and triggers, or delete it"},
		"declares empty":         {head + "dropins: {}\nensure: ~\n", 1, "web", "it declares nothing", "declare at least one of content, dropins, ensure, enabled, masked and triggers, or delete it"},
		"a list":                 {"- shape: service\n", 1, "", "the document is a list, and no declaration", "write fields, one a line, such as shape: service"},
		"a text":                 {"# x\nshape service\n", 2, "", `the document is the text "shape service", and no declaration`, "write fields, one a line, such as shape: service"},
	})
}

func TestParseCoercesNothing(t *testing.T) {
	refused(t, map[string]bad{
		"truth value in quotes": {head + "enabled: \"yes\"\n", 3, "web.enabled", `the text "yes" where true or false is wanted`, "write true" + boolCure},
		"yes":                   {head + "enabled: yes\n", 3, "web.enabled", `the text "yes" where true or false is wanted`, "write true" + boolCure},
		"off":                   {head + "enabled: off\n", 3, "web.enabled", `the text "off" where true or false is wanted`, "write false" + boolCure},
		"True":                  {head + "enabled: True\n", 3, "web.enabled", "the truth value True where true or false is wanted", "write true" + boolCure},
		"one":                   {head + "enabled: 1\n", 3, "web.enabled", "the number 1 where true or false is wanted", "write true" + boolCure},
		"a tag that lies":       {head + "enabled: !!bool 'yes'\n", 3, "web.enabled", "the truth value yes where true or false is wanted", "write true" + boolCure},
		"a list for truth":      {head + "enabled: [true]\n", 3, "web.enabled", "a list where true or false is wanted", "write true or false"},
		"number for a name":     {"shape: service\nname: 123\nensure: running\n", 2, "name", "the number 123 where a text is wanted", `put it in quotes: "123"`},
		"date for a unit":       {head + "ensure: running\nunit: 2024-01-02\n", 4, "web.unit", "the date 2024-01-02 where a text is wanted", `put it in quotes: "2024-01-02"`},
		"truth for ensure":      {head + "ensure: true\n", 3, "web.ensure", "the truth value true where a text is wanted", `put it in quotes: "true"`},
		"ensure misspelt":       {head + "ensure: Runing\n", 3, "web.ensure", `"Runing" is no value of this field`, "did you mean running?"},
		"ensure unknown":        {head + "ensure: failed\n", 3, "web.ensure", `"failed" is no value of this field`, "write running, stopped or restarted"},
		"ensure empty":          {head + "ensure: ''\n", 3, "web.ensure", "it is empty", "write running, stopped or restarted, or leave it out"},
		"state misspelt":        {head + "state: stoped\n", 3, "web.state", `"stoped" is no value of this field`, "did you mean stopped?"},
		"state empty":           {head + "state: ''\n", 3, "web.state", "it is empty", "write running, stopped or restarted, or leave it out"},
		"truth for state":       {head + "state: true\n", 3, "web.state", "the truth value true where a text is wanted", `put it in quotes: "true"`},
		"scope unknown":         {head + "ensure: running\nscope: session\n", 4, "web.scope", `"session" is no value of this field`, "write system or user"},
		"scope empty":           {head + "ensure: running\nscope: ''\n", 4, "web.scope", "it is empty", "write system or user, or leave it out"},
		"mask in words":         {head + "masked: yes\n", 3, "web.masked", `the text "yes" where true or false is wanted`, "write true" + boolCure},
		"on_change misspelt":    {head + "ensure: running\non_change: reload-or-restart\n", 4, "web.on_change", `"reload-or-restart" is no value of this field`, "did you mean reload_or_restart?"},
		"on_change unknown":     {head + "ensure: running\non_change: stop\n", 4, "web.on_change", `"stop" is no value of this field`, "write restart, reload, reload_or_restart or none"},
		"text for triggers":     {head + "ensure: running\ntriggers: /etc/a\n", 4, "web.triggers", `the text "/etc/a" where a list is wanted`, "write a list: [/etc/a]"},
		"number in triggers":    {head + "ensure: running\ntriggers: [1]\n", 4, "web.triggers[0]", "the number 1 where a text is wanted", `put it in quotes: "1"`},
		"on_withdraw unknown":   {head + "ensure: running\non_withdraw: keep\n", 4, "web.on_withdraw", `"keep" is no value of this field`, "write restore or release"},
		"on_withdraw empty":     {head + "ensure: running\non_withdraw: \"\"\n", 4, "web.on_withdraw", "it is empty", "write restore or release, or leave it out"},
		"map for content":       {head + "content: {a: b}\n", 3, "web.content", "a map where a text is wanted", "write a text"},
		"text for drop-ins":     {head + "dropins: a.conf\n", 3, "web.dropins", `the text "a.conf" where a map is wanted`, "write a map of file names to texts"},
		"number in drop-ins":    {head + "dropins:\n  a.conf: 1\n", 4, "web.dropins.a.conf", "the number 1 where a text is wanted", `put it in quotes: "1"`},
		"number names drop-in":  {head + "dropins:\n  1: a\n", 4, "web.dropins", "the number 1 where a text is wanted", `put it in quotes: "1"`},
		"text for nodes":        {head + "ensure: running\nnodes: ws1\n", 4, "web.nodes", `the text "ws1" where a list is wanted`, "write a list: [ws1]"},
		"number in nodes":       {head + "ensure: running\nnodes:\n- ws1\n- 2\n", 6, "web.nodes[1]", "the number 2 where a text is wanted", `put it in quotes: "2"`},
		"truth in labels":       {head + "ensure: running\nlabels: {web: true}\n", 4, "web.labels.web", "the truth value true where a text is wanted", `put it in quotes: "true"`},
		"timeout as a number":   {head + "ensure: running\ntimeout: 120\n", 4, "web.timeout", "the number 120 has no unit", "write 120s for seconds"},
		"timeout in quotes":     {head + "ensure: running\ntimeout: '120'\n", 4, "web.timeout", `"120" has no unit`, "write whole numbers with units, such as 90s, 2m or 1h30m"},
		"timeout with a point":  {head + "ensure: running\ntimeout: 1.5h\n", 4, "web.timeout", `"1.5h" has no unit of time after "1"`, "write whole numbers with units, such as 90s, 2m or 1h30m"},
		"timeout negative":      {head + "ensure: running\ntimeout: -2m\n", 4, "web.timeout", `"-2m" is no duration`, "write whole numbers with units, such as 90s, 2m or 1h30m"},
		"timeout in weeks":      {head + "ensure: running\ntimeout: 1w\n", 4, "web.timeout", `"1w" has no unit of time after "1"`, "write whole numbers with units, such as 90s, 2m or 1h30m"},
		"timeout too short":     {head + "ensure: running\ntimeout: 999ms\n", 4, "web.timeout", `"999ms" is out of bounds`, "write a time from 1s to 24h"},
		"timeout too long":      {head + "ensure: running\ntimeout: 24h1ms\n", 4, "web.timeout", `"24h1ms" is out of bounds`, "write a time from 1s to 24h"},
		"timeout far too long":  {head + "ensure: running\ntimeout: 99999999999999999999d\n", 4, "web.timeout", `"99999999999999999999d" is out of bounds`, "write a time from 1s to 24h"},
	})
}

func TestParseRefusesNames(t *testing.T) {
	long := strings.Repeat("a", 64)
	refused(t, map[string]bad{
		"missing":        {"shape: service\nunit: web\nensure: running\n", 1, "name", "missing", "give the declaration a name: it is its identity"},
		"null":           {"shape: service\nname: ~\nunit: web\nensure: running\n", 2, "name", "missing", "give the declaration a name: it is its identity"},
		"module's":       {"shape: service\nname: backup.web\nensure: running\n", 2, "name", `"backup.web": a name with a dot, MODULE.NAME, is kept for modules`, "use - in its place"},
		"upper case":     {"shape: service\nname: Web\nensure: running\n", 2, "name", `"Web" is not a DNS label`, nameCure},
		"64 bytes":       {"shape: service\nname: " + long + "\nensure: running\n", 2, "name", `"` + long + `" is not a DNS label`, nameCure},
		"dash in front":  {"shape: service\nname: -web\nensure: running\n", 2, "name", `"-web" is not a DNS label`, nameCure},
		"dash behind":    {"shape: service\nname: web-\nensure: running\n", 2, "name", `"web-" is not a DNS label`, nameCure},
		"umlaut":         {"shape: service\nname: wéb\nensure: running\n", 2, "name", `"wéb" is not a DNS label`, nameCure},
		"a path for one": {"shape: service\nname: ../web\nensure: running\n", 2, "name", `"../web": a name with a dot, MODULE.NAME, is kept for modules`, "use - in its place"},
	})
}

func TestParseRefusesUnits(t *testing.T) {
	with := func(u string) string { return head + "ensure: running\nunit: '" + u + "'\n" }
	aaa := strings.Repeat("a", 80)
	refused(t, map[string]bad{
		"F111 a path":           {with("/opt/x.service"), 4, "web.unit", `"/opt/x.service" is a path`, "a unit is named by its full name, such as x.service"},
		"a path that is bare":   {with("../bar"), 4, "web.unit", `"../bar" is a path`, "a unit is named by its full name, such as bar.service"},
		"a path to nothing":     {with("/"), 4, "web.unit", `"/" is a path`, "a unit is named by its full name, such as web.service"},
		"an option":             {with("--now.service"), 4, "web.unit", `"--now.service" begins with a dash and looks like an option`, gramCure},
		"scope":                 {with("x.scope"), 4, "web.unit", `"x.scope" is a scope unit, which systemd makes of what it finds: it has no file to declare and is not started`, "declare a unit of another type"},
		"device":                {with("dev-sda.device"), 4, "web.unit", `"dev-sda.device" is a device unit, which systemd makes of what it finds: it has no file to declare and is not started`, "declare a unit of another type"},
		"misspelt type":         {with("backup.tiemr"), 4, "web.unit", `"backup.tiemr" has no suffix of a unit type`, `did you mean "backup.timer"? otherwise write "backup.tiemr.service"`},
		"F113 not ASCII":        {with("ä.service"), 4, "web.unit", `"ä.service": byte 0 ("\xc3") is not allowed; systemd takes letters, digits and ":-_.\@"`, gramCure},
		"a blank":               {with("a b"), 4, "web.unit", `"a b.service": byte 1 (" ") is not allowed; systemd takes letters, digits and ":-_.\@"`, gramCure},
		"F113 256 bytes":        {with(strings.Repeat("a", 248) + ".service"), 4, "web.unit", `"` + aaa + `" has 256 bytes; systemd takes at most 255`, gramCure},
		"F020 template running": {with("x@.service"), 3, "web.ensure", `"x@.service" is a bare template: a bare template may have content and enablement, never activity`, "declare an instance, such as x@one.service, or leave ensure out"},
		"a protected unit":      {with("dbus.service"), 4, "web.unit", `"dbus.service" is protected: stead stands on it`, ownCure},
		"a drop-in root":        {with("systemd-.service"), 4, "web.unit", `"systemd-.service" is protected: systemd reads its drop-ins for systemd-logind.service too: stead stands on it`, ownCure},
		"empty":                 {with(""), 4, "web.unit", "it is empty", "write a unit name, or leave it out: it is the name with .service then"},
		"F113 no room for .d": {head + "dropins: {a.conf: x}\nunit: " + strings.Repeat("a", 246) + ".service\n", 4, "web.unit",
			"it has 254 bytes, so that the folder of its drop-ins would have more than 255, which no file system takes", "use a name of at most 253 bytes, or no dropins"},
	})
	_, problems := Parse("f", []byte("shape: service\nname: stead-host\nensure: stopped\n"))
	require.Equal(t, Problems{{"f", 1, "stead-host.unit", `"stead-host.service" is protected: it is stead's own`, ownCure}}, problems)
}

func TestParseRefusesAddressing(t *testing.T) {
	with := func(s string) string { return head + "ensure: running\n" + s }
	const labelCure = "use 1 to 63 letters, digits, -, _ and ., with a letter or digit at both ends"
	refused(t, map[string]bad{
		"two ways":        {with("nodes: [a]\nall: true\n"), 5, "web.all", "nodes and all are declared", oneCure},
		"three ways":      {with("nodes: [a]\nlabels: {a: b}\nall: true\n"), 5, "web.labels", "nodes and labels and all are declared", oneCure},
		"no nodes":        {with("nodes: []\n"), 4, "web.nodes", "0 nodes are named", "name 1 to 4096, or leave it out"},
		"too many nodes":  {with("nodes: [" + strings.Repeat("a,", 4097) + "]\n"), 4, "web.nodes", "4097 nodes are named", "name 1 to 4096, or leave it out"},
		"doubled node":    {with("nodes:\n- a\n- b\n- a\n"), 7, "web.nodes[2]", `"a" is named twice, first at nodes[0]`, "delete one of them"},
		"bad node":        {with("nodes: ['*']\n"), 4, "web.nodes[0]", `"*" is no node name`, "a node is named by a DNS label: 1 to 63 of a-z, 0-9 and -"},
		"no labels":       {with("labels: {}\n"), 4, "web.labels", "0 labels are named", "name 1 to 64, or leave it out"},
		"bad label key":   {with("labels: {a/b: c}\n"), 4, "web.labels.a/b", `"a/b" is no key of a label`, labelCure},
		"bad label value": {with("labels: {a: -}\n"), 4, "web.labels.a", `"-" is no value of a label`, labelCure},
		"doubled label":   {with("labels: {a: b, a: c}\n"), 4, "web.labels.a", "declared twice, first on line 4", "delete one of them"},
	})
}

func TestParseRefusesTexts(t *testing.T) {
	const empty = "it is empty; systemd takes an empty unit file for a mask"
	refused(t, map[string]bad{
		"F063 empty":               {head + "content: ''\n", 3, "web.content", empty, "write the unit file, or leave content out"},
		"empty block":              {head + "ensure: running\ncontent: |\nenabled: true\n", 4, "web.content", empty, "write the unit file, or leave content out"},
		"empty drop-in":            {head + "dropins: {a.conf: ''}\n", 3, "web.dropins.a.conf", "it is empty; all it would do is hide a drop-in of that name elsewhere", "write a comment into it if that is meant, or leave it out"},
		"over 64 KiB":              {head + "content: " + strings.Repeat("a", MaxContent+1) + "\n", 3, "web.content", "it has 65537 bytes; at most 65536 are taken", bigCure},
		"over 256 KiB":             {head + "dropins:\n  a.conf: " + strings.Repeat("a", MaxDropIns+1) + "\n", 4, "web.dropins.a.conf", "it has 262145 bytes; at most 262144 are taken", bigCure},
		"over 256 KiB in all":      {head + "dropins:\n  a.conf: " + strings.Repeat("a", MaxDropIns) + "\n  b.conf: a\n", 4, "web.dropins", "they have 262145 bytes; at most 262144 are taken in all", bigCure},
		"name of a drop-in":        {head + "dropins:\n  ../a.conf: x\n", 4, "web.dropins.../a.conf", `"../a.conf" is no name of a drop-in`, "use a-z, 0-9 and -, then .conf; at most 255 bytes"},
		"drop-in without a suffix": {head + "dropins:\n  a: x\n", 4, "web.dropins.a", `"a" is no name of a drop-in`, "use a-z, 0-9 and -, then .conf; at most 255 bytes"},
		"drop-in in upper case":    {head + "dropins:\n  A.conf: x\n", 4, "web.dropins.A.conf", `"A.conf" is no name of a drop-in`, "use a-z, 0-9 and -, then .conf; at most 255 bytes"},
		"NUL":                      {head + "content: \"[Unit]\\na=\\0b\\n\"\n", 3, "web.content", "line 2 of the text: it holds a NUL byte, at which systemd ends the line", "delete it"},
		"F116 CRLF":                {head + "content: \"[Unit]\\r\\na=b\\r\\n\"\n", 3, "web.content", "line 1 of the text: it holds a carriage return (CR, CRLF), at which systemd ends the line", "use Unix line ends"},
		"F116 BOM":                 {head + "content: \"\\uFEFF[Unit]\\n\"\n", 3, "web.content", "line 1 of the text: it begins with a byte order mark (BOM)", "delete it"},
		"F095 backslash":           {head + "content: |\n  [Service]\n  Environment=A=1 \\\n", 5, "web.content", "it ends with a backslash, which continues a line that is not there", "delete the backslash, or write the line"},
		"F095 backslash, drop-in":  {head + "dropins:\n  a.conf: |-\n    [Service]\n    Environment=A=1 \\\n", 6, "web.dropins.a.conf", "it ends with a backslash, which continues a line that is not there", "delete the backslash, or write the line"},
	})
}

func TestParseRefusesTextsThatReachProtectedUnits(t *testing.T) {
	with := func(s string) string { return head + "content: |\n  " + strings.ReplaceAll(s, "\n", "\n  ") + "\n" }
	const stands, own = " reaches a protected unit: stead stands on it", " reaches a protected unit: it is stead's own"
	refused(t, map[string]bad{
		"conflict":        {with("[Unit]\nConflicts=a.service stead-host.service"), 5, "web.content", "Conflicts=stead-host.service" + own, "delete it"},
		"spreading stop":  {with("[Unit]\nPropagatesStopTo=dbus.socket"), 5, "web.content", "PropagatesStopTo=dbus.socket" + stands, "delete it"},
		"requirement":     {with("[Unit]\n[Install]\n\nRequiredBy=user@1000.service"), 7, "web.content", "RequiredBy=user@1000.service" + stands, "delete it"},
		"alias":           {with("[Install]\nAlias=dbus-org.freedesktop.login1.service"), 5, "web.content", "Alias=dbus-org.freedesktop.login1.service" + stands, "delete it"},
		"also":            {with("[Install]\nAlso=reboot.target"), 5, "web.content", "Also=reboot.target reaches a protected unit: starting it stops or suspends the machine", "delete it"},
		"with specifiers": {head + "unit: host.service\ncontent: |\n  [Install]\n  Alias=stead-%N.service\n", 6, "web.content", "Alias=stead-host.service" + own, "delete it"},
		"from a drop-in":  {head + "dropins:\n  a.conf: |\n    [Unit]\n    Conflicts=stead-host.service\n", 6, "web.dropins.a.conf", "Conflicts=stead-host.service" + own, "delete it"},
	})
	for _, fine := range []string{"[Unit]\nConflicts=shutdown.target", "[Unit]\nRequires=dbus.service\nAfter=stead-host.service", "[Install]\nWantedBy=multi-user.target",
		"# Conflicts=stead-host.service", "[Service]\nConflicts=stead-host.service", "[Install]\nAlias=dbus.service\nAlias="} {
		_, problems := Parse("f", []byte(with(fine)))
		require.Empty(t, problems, fine)
	}
}

func TestParseRefusesWhatKillsAManager(t *testing.T) {
	const rule = "Type=dbus without BusName=, which the manager of systemd 247 does not survive"
	const cure = "give it the BusName= that it takes on the bus, or another Type="
	refused(t, map[string]bad{
		"in content":   {head + "content: |\n  [Service]\n  Type=dbus\n  ExecStart=/bin/true\n", 5, "web.content", rule, cure},
		"by a drop-in": {head + "content: |\n  [Service]\n  ExecStart=/bin/true\ndropins:\n  a.conf: |\n    [Service]\n    Type=dbus\n", 3, "web.content", rule, cure},
	})
	_, problems := Parse("a.yaml", []byte(head+"content: |\n  [Service]\n  Type=dbus\n  BusName=org.example.Web\n  ExecStart=/bin/true\n"))
	require.Empty(t, problems)
}

func TestParseRefusesContradictions(t *testing.T) {
	const cure = "write masked: false, or leave one of them out"
	refused(t, map[string]bad{
		"masked and running":     {head + "masked: true\nensure: running\n", 4, "web.ensure", "masked: true and running are declared, and a masked unit does not run", cure},
		"masked and restarted":   {head + "masked: true\nstate: restarted\n", 4, "web.state", "masked: true and restarted are declared, and a masked unit does not run", cure},
		"masked and enabled":     {head + "enabled: true\nmasked: true\n", 3, "web.enabled", "masked: true and enabled: true are declared, and a masked unit is not enabled", cure},
		"two spellings":          {head + "ensure: running\nstate: running\n", 4, "web.state", "ensure and state are declared, and state is the old name of ensure", "delete state"},
		"two spellings, swapped": {head + "state: stopped\nensure: running\n", 3, "web.state", "ensure and state are declared, and state is the old name of ensure", "delete state"},
		"F020 template restarted": {head + "unit: x@.service\nensure: restarted\n", 4, "web.ensure", `"x@.service" is a bare template: a bare template may have content and enablement, never activity`,
			"declare an instance, such as x@one.service, or leave ensure out"},
		"template with triggers": {head + "unit: x@.service\nenabled: true\ntriggers: [/etc/a]\n", 5, "web.triggers", `"x@.service" is a bare template: a bare template may have content and enablement, never activity`,
			"declare an instance, such as x@one.service, or leave triggers out"},
		"a course and nothing else": {head + "on_change: reload\n", 1, "web", "it declares nothing", "declare at least one of content, dropins, ensure, enabled, masked and triggers, or delete it"},
	})
	for _, fine := range []string{"masked: true\n", "masked: true\nensure: stopped\nenabled: false\n", "masked: false\nensure: running\nenabled: true\n", "unit: x@.service\nmasked: true\n",
		"masked: true\ncontent: '#'\non_change: reload\ntriggers: [/etc/a]\n", "ensure: ~\nstate: running\n", "state: ~\nensure: running\n", "triggers: [/etc/a]\non_change: reload\n"} {
		_, problems := Parse("f", []byte(head+fine))
		require.Empty(t, problems, fine)
	}
}

func TestParseRefusesTriggers(t *testing.T) {
	with := func(s string) string { return head + "ensure: running\ntriggers: " + s + "\n" }
	const written = "write the absolute path of a file or folder, such as /etc/web.conf, or file:NAME for a declared file"
	long := "/" + strings.Repeat("a/", 2047) + "bb"
	refused(t, map[string]bad{
		"none":           {with("[]"), 4, "web.triggers", "0 paths are named", "name 1 to 64, or leave it out"},
		"too many":       {with("[" + strings.Repeat("/a,", 65) + "]"), 4, "web.triggers", "65 paths are named", "name 1 to 64, or leave it out"},
		"relative":       {with("[etc/app.toml]"), 4, "web.triggers[0]", `"etc/app.toml" is no absolute path`, written},
		"below a home":   {with("['~/.config/app.toml']"), 4, "web.triggers[0]", `"~/.config/app.toml" is no absolute path`, written},
		"empty":          {with("['']"), 4, "web.triggers[0]", `"" is empty`, written},
		"double slash":   {with("[/etc//app.toml]"), 4, "web.triggers[0]", `"/etc//app.toml" is not written out`, "write /etc/app.toml"},
		"slash behind":   {with("[/etc/]"), 4, "web.triggers[0]", `"/etc/" is not written out`, "write /etc"},
		"upwards":        {with("[/etc/../root/x]"), 4, "web.triggers[0]", `"/etc/../root/x" is not written out`, "write /root/x"},
		"twice":          {with("\n- /etc/b\n- /etc/a\n- /etc/b"), 7, "web.triggers[2]", `"/etc/b" is named twice, first at triggers[0]`, "delete one of them"},
		"no file's name": {with("['file:App_config']"), 4, "web.triggers[0]", `"file:App_config" cites no declared file: a name is 1 to 63 of a-z, 0-9 and -, with no - at either end`, "write file:NAME, with the name of a declaration of shape file"},
		"no name":        {with("['file:']"), 4, "web.triggers[0]", `"file:" cites no declared file: a name is 1 to 63 of a-z, 0-9 and -, with no - at either end`, "write file:NAME, with the name of a declaration of shape file"},
		"a line break":   {with("[\"/etc/a\\nb\"]"), 4, "web.triggers[0]", `"/etc/a\nb" holds a control character`, "give the file another name, or name its folder"},
		"a long path":    {with("[" + long + "]"), 4, "web.triggers[0]", `"` + long[:80] + `" has 4097 bytes; a path has at most 4095`, written},
		"a long name":    {with("[/" + strings.Repeat("a", 256) + "]"), 4, "web.triggers[0]", `"/` + strings.Repeat("a", 79) + `" has a name of 256 bytes; a file's has at most 255`, written},
	})
}

func TestParseRefusesUnitsOfTheUserScope(t *testing.T) {
	with := func(s string) string { return head + "scope: user\n" + s + "\n" }
	const base = "the account's manager and session stand on it"
	refused(t, map[string]bad{
		"its bus":          {with("unit: dbus.service\nensure: stopped"), 4, "web.unit", `"dbus.service" is protected: ` + base, ownCure},
		"what ends it":     {with("unit: exit.target\nensure: running"), 4, "web.unit", `"exit.target" is protected: starting it ends the account's manager`, ownCure},
		"by a conflict":    {with("content: |\n  [Unit]\n  Conflicts=basic.target"), 6, "web.content", "Conflicts=basic.target reaches a protected unit: " + base, "delete it"},
		"by an alias":      {with("content: |\n  [Install]\n  Alias=dbus.service"), 6, "web.content", "Alias=dbus.service reaches a protected unit: " + base, "delete it"},
		"stead's own name": {with("unit: stead-host\nensure: stopped"), 4, "web.unit", `"stead-host.service" is protected: it is stead's own`, ownCure},
	})
	for _, fine := range []string{"unit: systemd-logind.service\nensure: stopped", "content: |\n  [Unit]\n  Conflicts=exit.target shutdown.target\n"} {
		_, problems := Parse("f", []byte(with(fine)))
		require.Empty(t, problems, fine)
	}
}

// Documents cost memory one after the other, and not all at once.
func TestAFileOfDocumentsIsBounded(t *testing.T) {
	services, problems := Parse("f", []byte(strings.Repeat("---\n", 1<<20)))
	require.Empty(t, services)
	require.Empty(t, problems)
	_, problems = Parse("f", []byte(strings.Repeat("---\nx\n", 1<<20)))
	require.LessOrEqual(t, len(problems), 2*MaxProblems)
	allocated := testing.AllocsPerRun(1, func() { Parse("f", []byte(strings.Repeat("---\nx\n", 1<<20))) })
	require.Less(t, allocated, 1e6, "the documents beyond the bound are not read")
}
