package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// SystemdEnv names the environment variable with the version of systemd on which nodes run whose test does not say a root file system: one of
// Versions. It is for a whole run of tests; RootEnv, where it is set too, goes before it.
const SystemdEnv = "STEAD_LAB_SYSTEMD"

// RootsEnv names the environment variable with the folder of the root file systems that make lab-roots makes, one in a folder of its suite's
// name. Unset: build/roots in this module.
const RootsEnv = "STEAD_LAB_ROOTS"

// suites are the releases of Debian that have a version of systemd, as .ci/lab-roots makes them.
var suites = map[string]string{"247": "bullseye", "252": "bookworm", "257": "trixie"}

// Versions are those of systemd that have a root file system to boot, oldest first.
func Versions() []string { return sortedKeys(suites) }

// VersionRoot is the root file system with that version of systemd, one of Versions. An error says how to make it where it is missing.
func VersionRoot(version string) (string, error) {
	suite, known := suites[version]
	if !known {
		return "", fmt.Errorf("systemd %q: want one of %s", version, strings.Join(Versions(), ", "))
	}
	dir := os.Getenv(RootsEnv)
	if dir == "" {
		top, err := moduleRoot()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(top, "build/roots")
	}
	root := filepath.Join(dir, suite)
	if _, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("systemd %s: there is no root file system %q: make lab-roots", version, root)
	} else if err != nil {
		return "", fmt.Errorf("systemd %s: %w", version, err)
	}
	return root, nil
}

// moduleRoot is the folder with go.mod above the working folder, which is that of the package under test.
func moduleRoot() (string, error) {
	at, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := at; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod above %q: set %s to the folder of root file systems", at, RootsEnv)
		}
	}
}

// root is the root file system of a node whose test does not say one: "" is this machine's.
func root(t testing.TB) string {
	t.Helper()
	if set := os.Getenv(RootEnv); set != "" {
		return set
	}
	version := os.Getenv(SystemdEnv)
	if version == "" {
		return ""
	}
	r, err := VersionRoot(version)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Self is the test binary of the package under test, in a form that runs in nodes of this run (see RootEnv and SystemdEnv): the one that runs,
// race detector and all, where nodes are over this machine's "/" or the binary needs no library of this machine's, else one that is compiled
// for it.
func Self(t testing.TB) string {
	t.Helper()
	if r := root(t); r == "" || r == "/" || static() {
		return "/proc/self/exe"
	}
	return BuildTest(t, ".")
}

// static is whether this program was built without cgo.
func static() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "0"})
}
