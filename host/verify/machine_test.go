package verify

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/become"
	"stead/host/unit"
	"stead/test/lab"
)

// TestMain makes of this program another, as an account, when it is started for that.
func TestMain(m *testing.M) {
	if len(os.Args) > 4 && os.Args[1] == "child" {
		who, err := become.Parse(strings.TrimPrefix(os.Args[2], "--as="))
		if err == nil {
			err = who.Run(os.Args[4:]...)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// The verifier starts a manager of its own, which would tell the host's manager
// that the host is ready, stopping, and so on.
func TestTheVerifierDoesNotSpeakForTheHost(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	socket := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	require.NoError(t, err)
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", socket)
	const file = "/etc/systemd/system/odd.service"
	require.NoError(t, os.WriteFile(file, []byte("[Service]\nExecStart=/no/such\n"), 0o644))
	require.NotEmpty(t, Run(t.Context(), map[unit.Name]string{"odd.service": file})["odd.service"])

	require.NoError(t, l.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
	b := make([]byte, 4096)
	n, err := l.Read(b)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "it said %q", b[:n])
}

// The verifier of systemd 252 takes no instance that has a file of its own and no
// template, and then says nothing of the units beside it.
func TestAUnitThatIsNotTakenInSilencesNoOther(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	files := make(map[unit.Name]string)
	for _, n := range []unit.Name{"alone@x.service", "bad.service", "good.service", "worse.service"} {
		files[n] = "/etc/systemd/system/" + string(n)
		text := "[Service]\nExecStart=/bin/true\n"
		if n == "bad.service" || n == "worse.service" {
			text += "Nonsense=1\n"
		}
		require.NoError(t, os.WriteFile(files[n], []byte(text), 0o644))
	}
	out := Run(t.Context(), files)
	require.Contains(t, out["bad.service"][0], "Nonsense")
	require.Contains(t, out["worse.service"][0], "Nonsense")
	require.Empty(t, out["good.service"])
}

// The verifier of an account's units is the account: what that cannot read it says
// nothing of.
func TestAnAccountsUnitsAreVerifiedAsTheAccount(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	require.NoError(t, exec.Command("useradd", "--create-home", "opal").Run())
	require.NoError(t, exec.Command("loginctl", "enable-linger", "opal").Run()) // the verifier wants the runtime folder
	who, err := user.Lookup("opal")
	require.NoError(t, err)
	uid, err := strconv.Atoi(who.Uid)
	require.NoError(t, err)
	gid, err := strconv.Atoi(who.Gid)
	require.NoError(t, err)
	require.NoError(t, exec.Command("systemctl", "start", "user@"+who.Uid+".service").Run()) // which waits until it is up
	dir := filepath.Join(who.HomeDir, ".config/systemd/user")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	files := map[unit.Name]string{}
	for n, mode := range map[unit.Name]os.FileMode{"bad.service": 0o644, "secret.service": 0o600} {
		files[n] = filepath.Join(dir, string(n))
		require.NoError(t, os.WriteFile(files[n], []byte("[Service]\nExecStart=/bin/true\nNonsense=1\n"), mode))
	}
	opal := become.Login{Name: "opal", UID: uid, GID: gid, Home: who.HomeDir}
	as := func(ctx context.Context, program ...string) *exec.Cmd {
		return opal.Running(ctx, []string{"child"}, program...)
	}
	out := RunAs(t.Context(), files, as)
	require.Contains(t, strings.Join(out["bad.service"], "\n"), "Nonsense")
	require.NotContains(t, strings.Join(out["secret.service"], "\n"), "Nonsense")
	require.Contains(t, strings.Join(Run(t.Context(), files)["secret.service"], "\n"), "Nonsense", "root reads it")
}
