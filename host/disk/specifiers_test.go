package disk

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpecifiersAreReadFromTheMachinesFiles(t *testing.T) {
	root := t.TempDir()
	for p, text := range map[string]string{
		"etc/os-release":                 "# a comment\nID=debian\nVERSION_ID=\"12\"\nVARIANT_ID='ser ver'\nIMAGE_ID=a\\ b\nBUILD_ID=\"q\\\"\"\n",
		"usr/lib/os-release":             "ID=other\n",
		"etc/machine-id":                 "0123456789abcdef0123456789abcdef\n",
		"etc/machine-info":               "PRETTY_HOSTNAME=\"The Web\"\n",
		"proc/sys/kernel/random/boot_id": "01234567-89ab-cdef-0123-456789abcdef\n",
	} {
		require.NoError(t, lay(root, p, text))
	}
	s, err := HostSpecifiers(root)
	require.NoError(t, err)
	require.Equal(t, "debian", s.OS)
	require.Equal(t, "12", s.OSVersion)
	require.Equal(t, "ser ver", s.Variant)
	require.Equal(t, "a b", s.ImageID)
	require.Equal(t, `q"`, s.BuildID)
	require.Equal(t, "The Web", s.PrettyHost)
	require.Equal(t, "0123456789abcdef0123456789abcdef", s.BootID)
	require.Equal(t, "0123456789abcdef0123456789abcdef", s.MachineID)
	require.Equal(t, "root", s.User)
	require.NotEmpty(t, s.Hostname)
	require.NotEmpty(t, s.KernelRelease)
	require.NotEmpty(t, s.Arch)

	bare, err := HostSpecifiers(t.TempDir())
	require.NoError(t, err)
	require.Equal(t, bare.Hostname, bare.PrettyHost)
	require.Empty(t, bare.OS)
}

func TestArchitecturesAreSystemdsNames(t *testing.T) {
	for machine, want := range map[string]string{"x86_64": "x86-64", "aarch64": "arm64", "i686": "x86", "armv7l": "arm", "ppc64le": "ppc64-le", "riscv64": "riscv64"} {
		require.Equal(t, want, architecture(machine))
	}
}
