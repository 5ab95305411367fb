package system

import (
	"fmt"
	"math/rand/v2"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// mischief is what may befall a unit: a shell script in the unit folder, in which
// $1 is the unit's name.
func mischief() []string {
	return []string{
		`systemctl stop "$1"`,
		`systemctl kill --signal=KILL "$1"`,
		`systemctl restart "$1"`,
		`systemctl disable "$1"`,
		`systemctl disable --now "$1"; systemctl daemon-reload`,
		`echo "# mine" >> "$1"`,
		`echo "# mine" >> "$1"; systemctl daemon-reload; systemctl restart "$1"`,
		`sed -i s/100000/777777/ "$1"; systemctl daemon-reload; systemctl restart "$1"`,
		`rm "$1"`,
		`rm "$1"; systemctl daemon-reload`,
		`rm "$1" multi-user.target.wants/"$1"; systemctl stop "$1"`,
		`chmod 600 "$1"; chown 3:3 "$1"`,
		`ln -sf /usr/lib/systemd/system/emergency.service multi-user.target.wants/"$1"`,
		`mv "$1" /run/; ln -s /run/"$1" "$1"; systemctl daemon-reload`,
		`: > "$1"; systemctl daemon-reload`,
		`rm "$1".d/10-a.conf`,
		`rm -r "$1".d; systemctl daemon-reload; systemctl restart "$1"`,
	}
}

// TestWhateverIsDoneEverythingComesBack does one random thing to each of many
// units, one right after the other, and kills the host and reexecutes the manager
// in between. Everything is as declared in the end, and as before.
func TestWhateverIsDoneEverythingComesBack(t *testing.T) {
	rounds, seed := 1, seeded(t)
	if full() {
		rounds = 6
	}
	random := rand.New(rand.NewPCG(seed, 1))
	files, names := map[string]string{}, make([]string, 40)
	for i := range names {
		names[i] = fmt.Sprintf("unit%02d", i)
		files[names[i]] = text{names[i], "ensure: running\nenabled: true\ntimeout: 20s\ndropins: {10-a.conf: \"[Service]\\nNice=5\\n\"}\n", sleeper(0)}.String()
	}
	m := running(t, files)
	before := m.state(t)
	for range rounds {
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for i, name := range names {
			script := mischief()[random.IntN(len(mischief()))]
			_, err := m.Exec(t.Context(), "sh", "-c", "cd "+etc+"; "+script, "sh", name+".service")
			require.NoError(t, err)
			t.Logf("%s: %s", name, script)
			switch random.IntN(20) {
			case 0:
				restarts := m.prop(service, "NRestarts")
				require.NoError(t, unix.Kill(m.hostPID(), unix.SIGKILL))
				m.until("the host is up again", func() bool {
					return m.prop(service, "NRestarts") != restarts && m.prop(service, "ActiveState") == "active"
				})
			case 1:
				m.Run(t, "systemctl", "daemon-reexec")
			}
			if i%8 == 0 {
				time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
			}
		}
		from := time.Now()
		m.stable(from)
		after := m.state(t)
		require.Equal(t, before.Disk, after.Disk)
		for _, name := range names {
			require.Contains(t, m.read("/proc/"+m.prop(name+".service", "MainPID")+"/cmdline"), "100000", name)
			require.Equal(t, "5", m.prop(name+".service", "Nice"), name)
			require.Equal(t, path.Join(etc, name+".service"), m.prop(name+".service", "FragmentPath"))
		}
		if rounds > 1 { // or two deaths within the budget are a crash loop, and three of anything in a minute a fight
			time.Sleep(25 * time.Second)
		}
	}
}

// stable waits until everything has been converged for two seconds.
func (m *machine) stable(from time.Time) {
	m.t.Helper()
	last, since := "", time.Now()
	m.until("converged and so for two seconds", func() bool {
		if last = m.amiss(from, nil); last != "" {
			since = time.Now()
		}
		return time.Since(since) > 2*time.Second
	}, &last)
	m.t.Logf("everything was converged %s after the last act", since.Sub(from).Round(time.Millisecond))
}
