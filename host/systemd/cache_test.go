package systemd

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/unit"
)

var upKey = key{load: unit.Loaded, active: unit.Active, sub: "running"}

// filled stores something of n and returns the cache.
func filled(n unit.Name) *cache {
	c := newCache()
	t := c.open(n, upKey)
	t.def, t.run = &definition{fragment: "/x"}, &running{seen: upKey}
	c.store(n, t)
	return c
}

func TestCacheKeepsUntilInvalidated(t *testing.T) {
	for _, tc := range []struct {
		name     string
		do       func(*cache)
		key      key
		def, run bool
	}{
		{"nothing happened", func(*cache) {}, upKey, true, true},
		{"it changed", func(c *cache) { c.changed("a.service") }, upKey, true, false},
		{"another one changed", func(c *cache) { c.changed("b.service") }, upKey, true, true},
		{"it was loaded anew", func(c *cache) { c.loaded("a.service") }, upKey, false, false},
		{"it was unloaded", func(c *cache) { c.unloaded("a.service") }, upKey, false, false},
		{"a reload", func(c *cache) { c.clear() }, upKey, false, false},
		{"the list says something else", func(*cache) {}, key{load: unit.Loaded, active: unit.Inactive, sub: "dead"}, true, false},
		{"a job is queued", func(*cache) {}, key{load: unit.Loaded, active: unit.Active, sub: "running", job: 1}, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := filled("a.service")
			tc.do(c)
			got := c.open("a.service", tc.key)
			require.Equal(t, tc.def, got.def != nil)
			require.Equal(t, tc.run, got.run != nil)
		})
	}
}

func TestCacheStoresNothingThatWasOvertaken(t *testing.T) {
	for name, do := range map[string]func(*cache){
		"it changed":           func(c *cache) { c.changed("a.service") },
		"it was loaded anew":   func(c *cache) { c.loaded("a.service") },
		"it was unloaded":      func(c *cache) { c.unloaded("a.service") },
		"everything was reset": func(c *cache) { c.clear() },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache()
			ticket := c.open("a.service", upKey)
			do(c)
			ticket.def, ticket.run = &definition{}, &running{seen: upKey}
			c.store("a.service", ticket)
			got := c.open("a.service", upKey)
			require.Nil(t, got.def)
			require.Nil(t, got.run)
		})
	}
}

func TestCacheOfLooseUnits(t *testing.T) {
	c := newCache()
	w := c.watch()
	_, loose := c.openLoose("a.service", w)
	require.False(t, loose, "it was not seen to be unloaded")
	c.unloaded("a.service")
	ticket, loose := c.openLoose("a.service", w)
	require.True(t, loose)
	require.Nil(t, ticket.def)
	require.Equal(t, "success", ticket.run.trouble.Result)
	ticket.def = &definition{fragment: "/x"}
	c.store("a.service", ticket)
	ticket, _ = c.openLoose("a.service", w)
	require.Equal(t, "/x", ticket.def.fragment)
	c.clear()
	c.unloaded("a.service")
	c.store("a.service", ticket)
	ticket, _ = c.openLoose("a.service", w)
	require.Nil(t, ticket.def, "what was read before a reload is not kept after it")
	c.unwatch(w)
	c.unloaded("b.service")
	_, loose = c.openLoose("b.service", w)
	require.False(t, loose)
}

func TestCacheHoldsNothingForTicketsThatAreGivenBack(t *testing.T) {
	c := newCache()
	ticket := c.open("a.service", upKey)
	c.discard("a.service", ticket.entry)
	require.Empty(t, c.units)
}
