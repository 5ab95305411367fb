package install

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"stead/host/unit"
)

// A Placed unit is a generated scene under names of its own, so that many stand side by side on one machine.
type Placed struct {
	Seed uint64
	Ask  unit.Name
	// Nothing is set by who finds that there is nothing to enable.
	Nothing bool

	disk machine
}

var (
	begins = regexp.MustCompile(`(^|[^A-Za-z0-9%])g([a-fh-z@%.-])`)
	mine   = regexp.MustCompile(`g([0-9]+)[a-z@%.-]`)
)

// Place generates the scene of a seed. Its names and texts are those of generate with the seed's number behind each initial "g".
func Place(seed uint64) Placed {
	s := generate(seed)
	number := "g" + strconv.FormatUint(seed, 10)
	rename := func(t string) string {
		t = strings.ReplaceAll(t, "/opt/g/", "/opt/"+number+"-/")
		t = begins.ReplaceAllString(t, "${1}"+number+"${2}")
		return strings.ReplaceAll(t, "/"+number+"enerator", "/generator")
	}
	p := Placed{Seed: seed, Ask: unit.Name(rename(string(s.ask))), disk: machine{}}
	for at, t := range s.disk {
		if path.Base(path.Dir(at)) == "service.d" {
			continue // it would be every scene's
		}
		t.text = rename(t.text)
		p.disk[rename(at)] = t
	}
	return p
}

// Write puts it on this machine's disk.
func (p Placed) Write() error { return p.disk.write() }

func (p Placed) String() string { return scene{p.disk, p.Ask}.String() }

// SeedOf is whose a path is; "" when it is nobody's.
func SeedOf(p string) string {
	m := mine.FindStringSubmatch(p)
	if m == nil {
		return ""
	}
	return m[1]
}

// Flags of the tests.
var (
	Seed   = seed
	Inside = inside
)

// Spelled writes targets one way, where /lib is a link to /usr/lib.
func Spelled(links map[string]string) map[string]string { return spelled(links) }

// Version reads the number of the running manager.
var Version = version

// Stands reports whether something of the scene itself is at a path.
func (p Placed) Stands(at string) bool { _, there := p.disk[at]; return there }
