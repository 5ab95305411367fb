package systemd

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stead/host/unit"
)

// presetFolders are where the system manager's preset files lie, the one that
// wins first (systemd.preset(5)). The last is the fourth where /lib is a link.
var presetFolders = [...]string{
	"/etc/systemd/system-preset", "/run/systemd/system-preset",
	"/usr/local/lib/systemd/system-preset", "/usr/lib/systemd/system-preset", "/lib/systemd/system-preset",
}

// userPresetFolders are those of user managers that root reads: not the account's
// own.
var userPresetFolders = [...]string{
	"/etc/systemd/user-preset", "/run/systemd/user-preset", "/usr/local/lib/systemd/user-preset", "/usr/lib/systemd/user-preset",
}

// mostPreset is what is read of one preset file.
const mostPreset = 1 << 20

// readPresets reads all preset files. What cannot be read says nothing: the
// manager has no call that tells the presets of all files, and systemctl reads
// them the same way.
func readPresets(folders []string) unit.Presets {
	files := map[string]string{}
	for _, dir := range folders {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if _, have := files[e.Name()]; !have && strings.HasSuffix(e.Name(), ".preset") && !e.IsDir() {
				files[e.Name()] = filepath.Join(dir, e.Name())
			}
		}
	}
	names := make([]string, 0, len(files))
	for n := range files {
		names = append(names, n)
	}
	slices.Sort(names)
	out := make([]string, 0, len(names))
	for _, n := range names {
		out = append(out, head(files[n]))
	}
	return unit.ParsePresets(out...)
}

// head returns the beginning of a regular file, "" of what cannot be read.
func head(path string) string {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, mostPreset))
	return string(data)
}
