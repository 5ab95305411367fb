package disk

// cache holds what is dear to make again. It forgets what was not asked for
// while as many other values as limit were.
type cache[K comparable, V any] struct {
	limit      int
	young, old map[K]V
}

func newCache[K comparable, V any](limit int) *cache[K, V] {
	return &cache[K, V]{limit: limit, young: make(map[K]V)}
}

// get returns the value of k, which fill makes when it is not known.
func (c *cache[K, V]) get(k K, fill func() V) V {
	v, ok := c.known(k)
	if !ok {
		v = fill()
		c.keep(k, v)
	}
	return v
}

// known returns the value of k if there is one.
func (c *cache[K, V]) known(k K) (V, bool) {
	if v, ok := c.young[k]; ok {
		return v, true
	}
	v, ok := c.old[k]
	if ok {
		c.keep(k, v)
	}
	return v, ok
}

func (c *cache[K, V]) keep(k K, v V) {
	if len(c.young) >= c.limit {
		c.young, c.old = make(map[K]V), c.young
	}
	c.young[k] = v
}
