package disk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"stead/host/account"
	"stead/host/shape"
	"stead/host/unit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const etc = "/etc/systemd/system"

// searchPath is UnitPath of a system manager on Debian 12.
func searchPath() []string {
	return []string{
		"/etc/systemd/system.control", "/run/systemd/system.control", "/run/systemd/transient", "/run/systemd/generator.early",
		etc, "/etc/systemd/system.attached", "/run/systemd/system", "/run/systemd/system.attached", "/run/systemd/generator",
		"/usr/local/lib/systemd/system", "/lib/systemd/system", "/usr/lib/systemd/system", "/run/systemd/generator.late",
	}
}

// world is a folder that a Disk takes for "/".
type world struct {
	*Disk
	t    testing.TB
	root string
}

// newWorld lays files out: a text that begins with "-> " is a link, a path that
// ends with "/" is a folder.
func newWorld(t testing.TB, files map[string]string) *world {
	t.Helper()
	w := &world{t: t, root: t.TempDir()}
	w.put("/usr/lib/systemd/system/", "")
	w.put("/lib", "-> usr/lib")
	w.put(etc+"/", "")
	for p, text := range files {
		w.put(p, text)
	}
	var err error
	w.Disk, err = New(Options{Root: w.root, UnitPath: searchPath(), Logins: account.Logins{Folder: w.at("/etc")}})
	require.NoError(t, err)
	return w
}

func (w *world) at(p string) string { return filepath.Join(w.root, p) }

func (w *world) put(p, text string) {
	w.t.Helper()
	require.NoError(w.t, lay(w.root, p, text))
}

func lay(root, p, text string) error {
	full := filepath.Join(root, p)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return err
	}
	if len(text) > 3 && text[:3] == "-> " {
		return os.Symlink(text[3:], full)
	}
	if p[len(p)-1] == '/' {
		return os.MkdirAll(full, 0o755)
	}
	return os.WriteFile(full, []byte(text), 0o644)
}

func (w *world) read(p string) string {
	w.t.Helper()
	data, err := os.ReadFile(w.at(p))
	require.NoError(w.t, err)
	return string(data)
}

// list returns the names below a folder, hidden ones too.
func (w *world) list(p string) []string {
	w.t.Helper()
	var all []string
	entries, err := os.ReadDir(w.at(p))
	require.NoError(w.t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

const plain = "[Service]\nExecStart=/bin/sleep 1000\n"

const wanted = plain + "[Install]\nWantedBy=multi-user.target\n"

// service declares a unit with the content.
func service(name unit.Name, content string) *shape.Service {
	return &shape.Service{Name: name.Stem(), Unit: name, Content: &content, Scope: unit.System}
}

func enabled(s *shape.Service, on bool) *shape.Service {
	s.Enabled = &on
	return s
}
