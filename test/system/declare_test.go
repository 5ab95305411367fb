package system

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// declare puts files of declarations in place, each at one blow; those whose
// text is "" go. It returns the time before.
func (m *machine) declare(files map[string]string) time.Time {
	m.t.Helper()
	m.declared = time.Now()
	for _, name := range sorted(files) {
		to := path.Join(folder, name+".yaml")
		if files[name] == "" {
			require.NoError(m.t, m.Remove(to))
			continue
		}
		require.NoError(m.t, m.WriteFile("/run/next", []byte(files[name]), 0o644))
		m.Run(m.t, "mv", "/run/next", to)
	}
	m.expect(files)
	return m.declared
}

// replace puts another folder of declarations in the place of the present one:
// files that come one by one may be taken over in parts, which are several
// applies.
func (m *machine) replace(files map[string]string) time.Time {
	m.t.Helper()
	next := folder + ".next"
	m.Run(m.t, "mkdir", next)
	for name, docs := range files {
		require.NoError(m.t, m.WriteFile(path.Join(next, name+".yaml"), []byte(docs), 0o644))
	}
	all := maps.Clone(files)
	for name := range m.files {
		if _, stays := files[name]; !stays {
			all[name] = ""
		}
	}
	m.declared = time.Now()
	m.Run(m.t, "sh", "-c", fmt.Sprintf("mv %s /run/old && mv %s %[1]s && rm -r /run/old", folder, next))
	m.expect(all)
	return m.declared
}

// expect notes which generation each declaration gets by a change of files.
func (m *machine) expect(files map[string]string) {
	before := documentsOf(m.files)
	for name, docs := range files {
		if docs == "" {
			delete(m.files, name)
		} else {
			m.files[name] = docs
		}
	}
	after := documentsOf(m.files)
	for name := range before {
		if after[name] == "" {
			delete(m.generations, name)
		}
	}
	for name, doc := range after {
		if doc != before[name] {
			m.generations[name]++
		}
	}
}

// documentsOf takes files apart into their declarations, by name.
func documentsOf(files map[string]string) map[string]string {
	all := make(map[string]string)
	for _, docs := range files {
		for doc := range strings.SplitSeq(docs, separator) {
			_, rest, _ := strings.Cut(doc, "\nname: ")
			name, _, _ := strings.Cut(rest, "\n")
			if strings.HasPrefix(doc, "shape: file\n") {
				name = "file:" + name
			}
			all[name] = doc
		}
	}
	return all
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// text is the declaration of a service.
type text struct {
	name    string
	fields  string // further lines of it
	content string // of its unit file
}

// sleeper is the unit file of a service that runs for long; the number makes
// one differ from another.
func sleeper(n int) string {
	return fmt.Sprintf("[Service]\nExecStart=/bin/sleep %d\n[Install]\nWantedBy=multi-user.target\n", 100000+n)
}

// up declares a service that runs and is enabled.
func up(name, content string) string {
	return text{name, "ensure: running\nenabled: true\n", content}.String()
}

// String is the declaration as a YAML document.
func (d text) String() string {
	s := "shape: service\nname: " + d.name + "\n" + d.fields
	if d.content != "" {
		s += "content: |\n"
		for line := range strings.Lines(d.content) {
			s += "  " + strings.TrimSuffix(line, "\n") + "\n"
		}
	}
	return s
}

const separator = "---\n"

// documents joins declarations to one file.
func documents(all ...string) string { return strings.Join(all, separator) }
