package unit

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/test/lab"
)

// busctl calls the manager and returns what it answers.
func busctl(args ...string) (string, error) {
	out, err := exec.Command("busctl", args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// load asks the manager for the object of a unit.
func load(name string) (string, error) {
	return busctl("call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "LoadUnit", "s", "--", name)
}

// TestNamesOfSystemd holds CheckName against the names that a real manager
// takes.
func TestNamesOfSystemd(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	all := make([]string, 0, 400)
	for _, n := range names {
		all = append(all, n.name)
	}
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "b-c", "@", "@", ".", `\`, ":", "_", "-", "%", " ", "é", "service", ".service", ".timer", ".x", "/", "9"}
	for len(all) < cap(all) {
		var s strings.Builder
		for range 1 + r.IntN(5) {
			s.WriteString(parts[r.IntN(len(parts))])
		}
		if r.IntN(2) == 0 {
			s.WriteString(".service")
		}
		all = append(all, s.String())
	}
	for _, s := range all {
		out, err := load(s)
		good := err == nil || strings.Contains(out, "is missing the instance name")
		require.True(t, good || strings.Contains(out, "is not valid"), "%q: %s", s, out)
		require.Equal(t, good, CheckName(s) == nil, "%q: %s", s, out)
	}
	fmt.Println(len(all), "names read as systemd reads them")
}

// bools are values and what they are: true, false, or neither.
var bools = map[string]string{
	"1": "true", "yes": "true", "y": "true", "true": "true", "t": "true", "on": "true", "YES": "true", "True": "true", "On": "true", "T": "true",
	"0": "false", "no": "false", "n": "false", "false": "false", "f": "false", "off": "false", "OFF": "false", "No": "false",
	"2": "", "01": "", "enable": "", "ja": "", "yes no": "", "tru": "", "-1": "", "\"yes\"": "", "o": "",
}

func TestParseBool(t *testing.T) {
	for s, want := range bools {
		b, err := ParseBool(s)
		require.Equal(t, want == "", err != nil, "%q", s)
		require.Equal(t, want == "true", b, "%q", s)
	}
	_, err := ParseBool("")
	require.Error(t, err)
}

// TestBoolsOfSystemd sets each value over both defaults in a real manager.
func TestBoolsOfSystemd(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	i := 0
	for s, want := range bools {
		for _, before := range []string{"true", "false"} {
			i++
			name := fmt.Sprintf("bool%d.service", i)
			text := fmt.Sprintf("[Service]\nExecStart=/bin/true\nRemainAfterExit=%s\nRemainAfterExit=%s\n", before, s)
			require.NoError(t, os.WriteFile("/run/systemd/system/"+name, []byte(text), 0o644))
			out, err := load(name)
			require.NoError(t, err)
			out, err = busctl("get-property", "org.freedesktop.systemd1", strings.Trim(out, "o \""), "org.freedesktop.systemd1.Service", "RemainAfterExit")
			require.NoError(t, err)
			is := strings.TrimPrefix(out, "b ")
			if want == "" {
				require.Equal(t, before, is, "%q", s)
			} else {
				require.Equal(t, want, is, "%q", s)
			}
		}
	}
}

// TestValuesOfSystemd holds what a value reads against a real manager.
func TestValuesOfSystemd(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	for i, text := range []string{
		"[Unit]\nDescription=a \\\n  b\\\n\tc\n",
		"[Unit]\nDescription=a \\\n# x\n ; y \\\nb\n",
		"[Unit]\nDescription=a\\\\\nDocumentation=man:b\n",
		"[Unit]\nDescription=a\\ \nDocumentation=man:b\n",
		"[Unit]\nDescription=a \\",
		"[Unit]\nDescription \t= \t a=b # c \t\n",
		"[Unit]\nDescription=\"a  b\"\n",
		"[Unit]\rDescription=a \\\r\n b\r",
		"\xef\xbb\xbf[Unit]\nDescription=\xef\xbb\xbfa\n",
		"[Unit]\nDescription=a\n[Unit]\nDescription=b",
		"[Unit]\nDescription=a\vb\fc\n",
	} {
		text += "\n[Service]\nExecStart=/bin/true\n"
		name := fmt.Sprintf("value%d.service", i)
		require.NoError(t, os.WriteFile("/run/systemd/system/"+name, []byte(text), 0o644))
		out, err := load(name)
		require.NoError(t, err)
		out, err = busctl("--json=short", "get-property", "org.freedesktop.systemd1", strings.Trim(out, "o \""), "org.freedesktop.systemd1.Unit", "Description")
		require.NoError(t, err)
		var is struct{ Data string }
		require.NoError(t, json.Unmarshal([]byte(out), &is))
		ours, _ := ParseFile([]byte(text)).Last("Unit", "Description")
		require.Equal(t, is.Data, ours, "%q", text)
	}
}
