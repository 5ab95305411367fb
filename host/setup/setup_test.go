package setup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func theUnit(text string) Unit {
	return Unit{Name: "stead-x.service", Text: text, Wanted: "multi-user.target", DropIns: map[string]string{"up.conf": "[Service]\nNice=1\n"}}
}

func TestPutIsDoneOnce(t *testing.T) {
	dir := t.TempDir()
	wrote, err := Put(dir, []string{dir}, theUnit("[Service]\nExecStart=/bin/true\n"))
	require.NoError(t, err)
	file, link := filepath.Join(dir, "stead-x.service"), filepath.Join(dir, "multi-user.target.wants", "stead-x.service")
	require.Equal(t, []string{file, filepath.Join(dir, "stead-x.service.d", "up.conf"), link}, wrote)
	to, err := os.Readlink(link)
	require.NoError(t, err)
	require.Equal(t, file, to)

	wrote, err = Put(dir, []string{dir}, theUnit("[Service]\nExecStart=/bin/true\n"))
	require.NoError(t, err)
	require.Empty(t, wrote)
}

func TestPutKeepsWhatItReplaces(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "stead-x.service")
	require.NoError(t, os.WriteFile(file, []byte("by hand"), 0o600))
	_, err := Put(dir, []string{dir}, theUnit("new"))
	require.NoError(t, err)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "new", string(text))
	text, err = os.ReadFile(file + ".old")
	require.NoError(t, err)
	require.Equal(t, "by hand", string(text))
}

func TestPutTakesThePackagesUnit(t *testing.T) {
	dir, vendor := t.TempDir(), t.TempDir()
	file := filepath.Join(vendor, "stead-x.service")
	require.NoError(t, os.WriteFile(file, []byte("packaged"), 0o600))
	u := theUnit("ours")
	u.DropIns = map[string]string{"up.conf": ""}
	wrote, err := Put(dir, []string{dir, vendor}, u)
	require.NoError(t, err)
	link := filepath.Join(dir, "multi-user.target.wants", "stead-x.service")
	require.Equal(t, []string{link}, wrote)
	to, err := os.Readlink(link)
	require.NoError(t, err)
	require.Equal(t, file, to)
	require.NoFileExists(t, filepath.Join(dir, "stead-x.service"))
}

func TestPutTakesADropInAway(t *testing.T) {
	dir := t.TempDir()
	_, err := Put(dir, nil, theUnit("x"))
	require.NoError(t, err)
	u := theUnit("x")
	u.DropIns["up.conf"] = ""
	wrote, err := Put(dir, nil, u)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "stead-x.service.d", "up.conf")}, wrote)
	require.NoFileExists(t, wrote[0])
}

func TestPutNamesWhatItCannotWrite(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "multi-user.target.wants"), nil, 0o600))
	_, err := Put(dir, nil, theUnit("x"))
	require.ErrorContains(t, err, "multi-user.target.wants")
}
