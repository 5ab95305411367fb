package identity

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// readEnv tells the test binary to read this file, as whoever it runs as.
const readEnv = "STEAD_TEST_READ"

// With LoadCredential= systemd hands a file of root's to a unit's account by an
// access list, whose mask then stands where the bits of the group are.
func TestFileThatRootHandsOverIsRead(t *testing.T) {
	if path := os.Getenv(readEnv); path != "" {
		text, err := readOwn(path)
		require.NoError(t, err)
		require.Equal(t, "secret", string(text))
		return
	}
	require.Zero(t, os.Geteuid(), "root hands over")
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		require.NoError(t, os.Chmod(d, 0o755)) //nolint:gosec // another account passes through
	}
	path := filepath.Join(dir, "runtime.json")
	require.NoError(t, os.WriteFile(path, []byte("secret"), 0o400))
	const reader = 65534
	access := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, may uint16
		id       uint32
	}{{1, 4, ^uint32(0)}, {2, 4, reader}, {4, 0, ^uint32(0)}, {0x10, 4, ^uint32(0)}, {0x20, 0, ^uint32(0)}} {
		access = binary.LittleEndian.AppendUint16(access, e.tag)
		access = binary.LittleEndian.AppendUint16(access, e.may)
		access = binary.LittleEndian.AppendUint32(access, e.id)
	}
	require.NoError(t, unix.Setxattr(path, "system.posix_acl_access", access, 0))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o440), info.Mode().Perm())
	read := func() (string, error) {
		c := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^"+t.Name()+"$")
		c.Env, c.Dir = append(os.Environ(), readEnv+"="+path), "/"
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: reader, Gid: reader}}
		out, err := c.CombinedOutput()
		return string(out), err
	}
	out, err := read()
	require.NoError(t, err, out)
	_, err = readOwn(path)
	require.ErrorContains(t, err, "others may read", "root itself keeps no such files")
	for _, mode := range []os.FileMode{0o444, 0o460} {
		require.NoError(t, os.Chmod(path, mode))
		out, err = read()
		require.Error(t, err)
		require.Contains(t, out, "others may read")
	}
	require.NoError(t, os.Chmod(path, 0o440))
	require.NoError(t, os.Chown(path, 0, reader))
	out, err = read()
	require.Error(t, err)
	require.Contains(t, out, "others may read", "a group of others")
}
