package ledger

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"

	"stead/host/accept"
	"stead/host/plan"
	"stead/host/unit"
)

// Key names a unit: a manager is always of a scope.
type Key struct {
	Scope unit.Scope
	Unit  unit.Name
}

func (k Key) bytes() []byte { return []byte(string(k.Scope) + "/" + string(k.Unit)) }

// State is all that a ledger holds, but for the blobs. Its maps are the
// caller's and never nil.
type State struct {
	Declarations map[string]accept.Identity // by name
	Held         *accept.Held               // the index last accepted from a mesh; nil before the first
	Units        map[Key]plan.Memory
	Managers     map[unit.Scope]plan.Manager
}

// Memories returns the memories of one scope, sorted by unit.
func (s State) Memories(scope unit.Scope) []plan.Memory {
	var list []plan.Memory
	for _, k := range slices.SortedFunc(maps.Keys(s.Units), func(a, b Key) int { return strings.Compare(string(a.Unit), string(b.Unit)) }) {
		if k.Scope == scope {
			list = append(list, s.Units[k])
		}
	}
	return list
}

// Load reads everything. It is for the start of a host: what is committed later
// is known to who committed it.
func (l *Ledger) Load() (State, error) {
	s := State{
		Declarations: make(map[string]accept.Identity),
		Units:        make(map[Key]plan.Memory),
		Managers:     make(map[unit.Scope]plan.Manager),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.guard("read", func() error {
		return l.db.View(func(tx *bolt.Tx) error {
			if err := l.loadUnits(tx, s.Units); err != nil {
				return err
			}
			err := l.each(tx, declarationsBucket, func(key string, data []byte) error {
				var id accept.Identity
				err := json.Unmarshal(data, &id)
				s.Declarations[key] = id
				return err
			})
			if err != nil {
				return err
			}
			err = l.each(tx, meshBucket, func(_ string, data []byte) error {
				s.Held = new(accept.Held)
				return json.Unmarshal(data, s.Held)
			})
			if err != nil {
				return err
			}
			return l.each(tx, managersBucket, func(key string, data []byte) error {
				var m plan.Manager
				err := json.Unmarshal(data, &m)
				s.Managers[unit.Scope(key)] = m
				return err
			})
		})
	})
	return s, err
}

// loadUnits also sees that what stood at every path can still be put back.
func (l *Ledger) loadUnits(tx *bolt.Tx, units map[Key]plan.Memory) error {
	blobs := tx.Bucket(blobsBucket)
	return l.each(tx, unitsBucket, func(key string, data []byte) error {
		var m plan.Memory
		if err := json.Unmarshal(data, &m); err != nil {
			return err
		}
		for digest := range needs(m.Found) {
			if blobs.Get([]byte(digest)) == nil {
				return l.damaged("the bytes of %s, which %s needs, are missing", digest, key)
			}
		}
		units[Key{m.Scope, m.Unit}] = m
		return nil
	})
}

// each calls f with every key of a bucket and its value, whose checksum holds.
func (l *Ledger) each(tx *bolt.Tx, bucket []byte, f func(key string, data []byte) error) error {
	return tx.Bucket(bucket).ForEach(func(k, v []byte) error {
		data, err := unseal(k, v)
		if err == nil {
			err = f(string(k), data)
		}
		if err != nil {
			return l.damaged("%s %.300q: %w", bucket, k, err)
		}
		return nil
	})
}

// Blob returns the bytes that a Memory.Found refers to by their digest. Errors:
// Failed when they are missing or are no longer those bytes.
func (l *Ledger) Blob(digest string) (data []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err = l.guard("read", func() error {
		return l.db.View(func(tx *bolt.Tx) error {
			v := tx.Bucket(blobsBucket).Get([]byte(digest))
			if v == nil {
				return l.damaged("there are no bytes of %s", digest)
			}
			if got := sum(v); got != digest {
				return l.damaged("the bytes of %s are those of %s", digest, got)
			}
			data = slices.Clone(v)
			return nil
		})
	})
	return data, err
}
