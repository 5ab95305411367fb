package lab_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/test/lab"
)

// outer stands for the test that runs others inside, and keeps what they do to it.
type outer struct {
	testing.TB
	failed []string
	out    strings.Builder
}

func (o *outer) Errorf(format string, args ...any) {
	o.failed = append(o.failed, fmt.Sprintf(format, args...))
}
func (o *outer) Output() io.Writer {
	return &o.out
}

func TestWhatHappensInsideIsReportedOutside(t *testing.T) {
	n := lab.Start(t, lab.Options{})
	binary := lab.BuildTest(t, "./testdata/inner")
	require.Equal(t, binary, lab.BuildTest(t, "./testdata/inner"), "it is built once")
	for name, c := range map[string]struct {
		run    string
		want   lab.Inner
		failed string
	}{
		"all pass":     {"Passes|Systemd", lab.Inner{Passed: []string{"TestPasses/sub", "TestPasses", "TestSystemd"}}, ""},
		"one fails":    {"Passes|Fails", lab.Inner{Passed: []string{"TestPasses/sub", "TestPasses"}, Failed: []string{"TestFails"}}, `failed: ["TestFails"]`},
		"one skips":    {"Systemd|Skips", lab.Inner{Passed: []string{"TestSystemd"}, Skipped: []string{"TestSkips"}}, `skipped: ["TestSkips"]`},
		"binary exits": {"Systemd|Exits", lab.Inner{Passed: nil}, "exit status 3"},
		"none runs":    {"Nothing", lab.Inner{}, "no test ran"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &outer{TB: t}
			got := n.RunTest(o, binary, "-test.run", c.run)
			require.Equal(t, c.want, got)
			if c.failed == "" {
				require.Empty(t, o.failed)
				require.Contains(t, o.out.String(), "--- PASS: TestPasses")
				return
			}
			require.Len(t, o.failed, 1)
			require.Contains(t, o.failed[0], c.failed)
		})
	}
	require.Empty(t, n.Run(t, "find", "/tmp", "-name", "lab-*"))
}

func TestInsideRunsTheTestItself(t *testing.T) {
	t.Run("sub", func(t *testing.T) {
		if !lab.Inside(t, lab.Options{Hostname: "there"}) {
			return
		}
		name, err := os.Hostname()
		require.NoError(t, err)
		require.Equal(t, "there", name)
	})
}

func TestLedgerCountsNodesAndInnerTests(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger")
	t.Setenv(lab.LedgerEnv, ledger)
	lab.Start(t, lab.Options{}).RunTest(t, lab.BuildTest(t, "./testdata/inner"), "-test.run", "Passes")
	b, err := os.ReadFile(ledger)
	require.NoError(t, err)
	require.Equal(t, "lab.TestLedgerCountsNodesAndInnerTests\ninner.TestPasses/sub\ninner.TestPasses\n", string(b))
}

func TestSteadIsInstalled(t *testing.T) {
	n := lab.Start(t, lab.Options{})
	n.InstallStead(t)
	require.Contains(t, n.Run(t, "stead", "--help"), "stead")
	require.Equal(t, "755\n", n.Run(t, "stat", "-c", "%a", "/usr/local/bin/stead"))
}
