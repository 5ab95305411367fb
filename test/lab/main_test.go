package lab_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/test/lab"
)

// TestMain lets this binary stand in for another process that boots a node and is then killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("LAB_TEST_BOOT_IN"); dir != "" {
		keep := os.Getenv("LAB_TEST_KEEP") != ""
		o := lab.Options{Name: "other", Dir: dir, Keep: keep}
		if name := os.Getenv("LAB_TEST_NETWORK"); name != "" {
			w, err := lab.MakeNetwork(context.Background(), lab.NetworkOptions{Name: name, Dir: dir, Keep: keep})
			if err != nil {
				fmt.Println("error:", err)
				os.Exit(1)
			}
			o.Networks = append(o.Networks, w)
		}
		n, err := lab.Boot(context.Background(), o)
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println(n.PID())
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

// bootElsewhere boots the node "other" in dir from another process, which goes on to live until the test kills it.
func bootElsewhere(t *testing.T, dir string, env ...string) *os.Process {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(append(os.Environ(), "LAB_TEST_BOOT_IN="+dir), env...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if n, err := lab.Open(dir, "other"); err == nil {
			n.Down(context.Background())
		}
		if w, err := lab.OpenNetwork(dir, "w"); err == nil {
			w.Down(context.Background())
		}
	})
	var pid int
	_, err = fmt.Fscan(out, &pid)
	require.NoError(t, err, "the other process said no PID")
	return cmd.Process
}

// within waits for what is so soon.
func within(t *testing.T, is func() bool, what string) {
	t.Helper()
	require.Eventually(t, is, 10*time.Second, 5*time.Millisecond, what)
}

// labCgroups are the cgroups of nodes with that name.
func labCgroups(t *testing.T, name string) []string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, " - cgroup2 ") {
			found, err := filepath.Glob(filepath.Join(strings.Fields(line)[4], "stead-lab", name+"-*"))
			require.NoError(t, err)
			return found
		}
	}
	t.Fatal("no cgroup2")
	return nil
}

func withTimeout(t *testing.T, seconds int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), time.Duration(seconds)*time.Second)
}
