package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/unit"
	"stead/test/lab"
)

const (
	versionsPage = "/tmp/systemd.md"
	folder       = "/etc/systemd/system/"
)

// TestTheDifferencesBetweenVersionsAreThoseOnThePage asks the running manager for each row of docs/systemd.md.
func TestTheDifferencesBetweenVersionsAreThoseOnThePage(t *testing.T) {
	if !lab.AmInside() {
		page, err := os.ReadFile("../../docs/systemd.md")
		require.NoError(t, err)
		n := lab.Start(t, lab.Options{})
		n.WriteFile(versionsPage, page, 0o644)
		n.RunTest(t, lab.Self(t), "-test.run", "^"+t.Name()+"$")
		return
	}
	p := &prober{T: t, m: connect(t, Options{})}
	text, err := p.m.Version(t.Context())
	require.NoError(t, err)
	column := strings.Index("247 252 257", text[:3])/4 + 1
	require.Positive(t, column, "a version that the page has: %s", text)
	rows, asked := tableOf(t, versionsPage), p.questions()
	for what := range asked {
		require.Contains(t, rows, what, "the page has the row")
	}
	for what, cells := range rows {
		ask := asked[what]
		require.NotNil(t, ask, "a row that nobody asks the manager for: %q", what)
		said := cells[column]
		if said == "the manager dies" {
			continue // so would the test
		}
		p.clear()
		if is := ask(); is != said {
			t.Errorf("systemd %s: %s: it is %q, and the page says %q", text, what, is, said)
		}
	}
}

// tableOf returns the rows of the table of a page by their first cell.
func tableOf(t *testing.T, page string) map[string][]string {
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	rows := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 || strings.HasPrefix(cells[0], "-") || strings.TrimSpace(cells[0]) == "what" {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows[cells[0]] = cells
	}
	require.Greater(t, len(rows), 15)
	return rows
}

// prober asks a manager what it makes of units.
type prober struct {
	*testing.T
	m *Manager
}

func (p *prober) clear() {
	for _, pattern := range []string{folder + "pv*", folder + "*.wants", folder + "*.upholds", "/usr/lib/systemd/system/pv*", "/opt/pv*"} {
		all, err := filepath.Glob(pattern)
		require.NoError(p, err)
		for _, f := range all {
			require.NoError(p, os.RemoveAll(f))
		}
	}
}

func (p *prober) write(path, text string) {
	if !strings.HasPrefix(path, "/") {
		path = folder + path
	}
	require.NoError(p, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(p, os.WriteFile(path, []byte(text), 0o644))
}

func (p *prober) link(to, at string) { require.NoError(p, os.Symlink(to, folder+at)) }

// enabled enables a unit and returns the links that were made, "PATH TARGET" below the folder, and the manager's error.
func (p *prober) enabled(n unit.Name) (string, error) {
	_, err := p.m.Enable(p.Context(), []unit.Name{n})
	var made []string
	err = errors.Join(err, filepath.WalkDir(folder, func(at string, _ os.DirEntry, err error) error {
		if to, no := os.Readlink(at); no == nil && strings.Contains(at, "pv") {
			made = append(made, strings.TrimPrefix(at, folder)+" "+to)
		}
		return err
	}))
	return strings.Join(made, "\n"), err
}

func (p *prober) loaded(n unit.Name) unit.Status {
	_, err := p.m.Reload(p.Context())
	require.NoError(p, err)
	s, err := p.m.Observe(p.Context(), []unit.Name{n})
	require.NoError(p, err)
	return s[0]
}

// either is one of two words.
func either(ok bool, yes, no string) string {
	if ok {
		return yes
	}
	return no
}

// outcome is what became of an attempt that may be passed over.
func outcome(err error) string { return either(err == nil, "passed over", "error") }

const idle = "[Service]\nExecStart=/bin/sleep infinity\n"

// questions are the rows of the page.
func (p *prober) questions() map[string]func() string {
	all := map[string]func() string{
		"`Type=dbus` without `BusName=` is loaded": func() string {
			p.write("pv.service", idle+"Type=dbus\n")
			return string(p.loaded("pv.service").Load)
		},
		"`Type=notify-reload` can be reloaded": func() string {
			p.write("pv.service", idle+"Type=notify-reload\n")
			require.NoError(p, os.MkdirAll(folder+"multi-user.target.wants", 0o755))
			p.link(folder+"pv.service", "multi-user.target.wants/pv.service") // what a unit that runs names is kept loaded
			return either(p.loaded("pv.service").CanReload, "yes", "no")
		},
		"a section header with a quote in it": func() string {
			p.write("pv.service", "[a\"b]\n"+idle)
			return either(p.loaded("pv.service").Load == unit.Loaded, "passed over", string(p.loaded("pv.service").Load))
		},
		"a folder stands where a unit file is looked for": func() string {
			p.write("pv.service/x", "")
			p.write("/usr/lib/systemd/system/pv.service", idle)
			return either(p.loaded("pv.service").Load == unit.Loaded, "passed over", string(p.loaded("pv.service").Load))
		},
		"FragmentPath of a unit file that is linked from outside": func() string {
			p.write("/opt/pv.service", idle)
			p.link("/opt/pv.service", "pv.service")
			return map[string]string{"/opt/pv.service": "the file", folder + "pv.service": "the link"}[p.loaded("pv.service").Fragment]
		},
		"drop-ins of a masked unit": func() string {
			p.write("pv.service.d/a.conf", "[Service]\nNice=1\n")
			p.link("/dev/null", "pv.service")
			return either(len(p.loaded("pv.service").DropIns) == 1, "listed", "not listed")
		},
		"properties StopPropagatedFrom, UpheldBy of a unit": func() string {
			return either(p.property("StopPropagatedFrom") == nil && p.property("UpheldBy") == nil, "there", "not there")
		},
	}
	for what, ask := range p.installs() {
		all[what] = ask
	}
	return all
}

// property asks for one of a unit that is always there.
func (p *prober) property(name string) error {
	ctx, cancel := context.WithTimeout(p.Context(), 10*time.Second)
	defer cancel()
	l, err := p.m.using(ctx, "ask")
	require.NoError(p, err)
	return l.one(ctx, get("/org/freedesktop/systemd1/unit/basic_2etarget", "org.freedesktop.systemd1.Unit", name)).err
}

// installs are the rows about [Install] sections.
func (p *prober) installs() map[string]func() string {
	install := func(n unit.Name, lines string) (string, error) {
		p.write(string(n), idle+"[Install]\n"+lines+"\n")
		return p.enabled(n)
	}
	has := func(made string, links ...string) bool {
		for _, l := range links {
			if !strings.Contains(made, l) {
				return false
			}
		}
		return true
	}
	return map[string]func() string{
		"`UpheldBy=` in [Install]": func() string {
			made, _ := install("pv.service", "UpheldBy=pva.target")
			return either(has(made, "pva.target.upholds/pv.service"), "makes a link", "not known")
		},
		"`%A`, `%M` and `%q` in [Install]": func() string {
			known := 0
			for _, c := range "AMq" {
				made, _ := install("pv.service", fmt.Sprintf("WantedBy=pva-%%%c.target", c))
				known += len(made) // each one is another link, or none
				p.clear()
			}
			return either(known > 0, "expanded", "not known")
		},
		"a word of `WantedBy=` with an unknown specifier": func() string {
			made, _ := install("pv.service", "WantedBy=pva.target %h.target pvb.target")
			require.True(p, has(made, "pva.target.wants"), made)
			return either(has(made, "pvb.target.wants"), "it alone is lost", "it and those behind it are lost")
		},
		"a quote that is left open in `WantedBy=`": func() string {
			made, _ := install("pv.service", `WantedBy=pva.target "pvb.target`)
			return either(has(made, "pva.target.wants"), "the words before it count", "the line is lost")
		},
		"a template without `DefaultInstance=` is enabled": func() string {
			made, err := install("pv@.service", "WantedBy=pva.target")
			require.Empty(p, made)
			return either(err == nil, "no link, no error", "error")
		},
		"`Also=` names a unit that is missing": func() string {
			_, err := install("pv.service", "WantedBy=pva.target\nAlso=pvnone.service")
			return outcome(err)
		},
		"`Alias=` is the unit's own name": func() string {
			_, err := install("pv.service", "Alias=pv.service")
			return outcome(err)
		},
		"`Alias=` cannot be an alias, beside one that can": func() string {
			made, err := install("pv.service", "Alias=pv.socket pvn.service")
			require.True(p, has(made, "pvn.service "), made)
			return outcome(err)
		},
		"`WantedBy=` holds no unit name, beside an alias that is made": func() string {
			made, err := install("pv.service", "Alias=pvn.service\nWantedBy=nonsense")
			require.True(p, has(made, "pvn.service "), made)
			return outcome(err)
		},
		"`Alias=` of a unit that is linked from outside leads to": func() string {
			p.write("/opt/pv.service", idle+"[Install]\nAlias=pvn.service\n")
			p.link("/opt/pv.service", "pv.service")
			made, err := p.enabled("pv.service")
			require.NoError(p, err)
			return either(has(made, "pvn.service /opt/pv.service"), "the file", either(has(made, "pvn.service "+folder+"pv.service"), "the link", made))
		},
		"a link from outside, under another name than its file's": func() string {
			p.write("/opt/pvo.service", idle+"[Install]\nWantedBy=pva.target\n")
			p.link("/opt/pvo.service", "pv.service")
			_, err := p.enabled("pv.service")
			return either(err == nil, "is enabled", "cannot be enabled")
		},
		"a link that leads nowhere stands where `Alias=` wants one": func() string {
			p.link("/opt/pvnone", "pvn.service")
			made, err := install("pv.service", "Alias=pvn.service")
			return either(err == nil && has(made, "pvn.service "+folder), "replaced", outcome(err))
		},
	}
}
