package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	bolt "go.etcd.io/bbolt"

	"stead/host/accept"
	"stead/host/fault"
	"stead/host/plan"
	"stead/host/unit"
)

// Tx is a change of the ledger. Within it deletions come before what is put.
type Tx struct {
	Put    []accept.Identity // declarations, by their Name
	Delete []string          // names of declarations
	Held   *accept.Held      // the index accepted from a mesh; nil leaves that which is held
	Record plan.Record
}

// Empty reports whether tx changes nothing.
func (tx Tx) Empty() bool {
	return len(tx.Put) == 0 && len(tx.Delete) == 0 && tx.Held == nil && tx.Record.Empty()
}

// Record commits r alone.
func (l *Ledger) Record(r plan.Record) error { return l.Commit(Tx{Record: r}) }

// Accept commits what was accepted from a mesh.
func (l *Ledger) Accept(c accept.Change) error {
	return l.Commit(Tx{Put: c.Put, Delete: c.Delete, Held: c.Held})
}

// Commit makes tx durable in one transaction. An empty one does nothing and
// touches no disk.
//
// The bytes of every file in a Memory.Found must be in Record.Blobs, or in the
// ledger already: a record that could not be put back is refused with Internal.
// Blobs that no Memory.Found needs any more go in the same transaction; a blob
// that none ever needed is not stored.
func (l *Ledger) Commit(tx Tx) error {
	if tx.Empty() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.guard("write", func() error {
		if err := l.here(); err != nil {
			return err
		}
		return l.db.Update(func(b *bolt.Tx) error {
			if err := declarations(b, tx); err != nil {
				return err
			}
			return l.record(b, tx.Record)
		})
	})
}

func declarations(b *bolt.Tx, tx Tx) error {
	bucket := b.Bucket(declarationsBucket)
	for _, name := range tx.Delete {
		if err := bucket.Delete([]byte(name)); err != nil {
			return err
		}
	}
	for _, id := range tx.Put {
		if err := put(bucket, []byte(id.Name), id); err != nil {
			return fmt.Errorf("declaration %q: %w", id.Name, err)
		}
	}
	if tx.Held == nil {
		return nil
	}
	return put(b.Bucket(meshBucket), heldKey, tx.Held)
}

func (l *Ledger) record(b *bolt.Tx, r plan.Record) error {
	blobs := b.Bucket(blobsBucket)
	doubtful := make(map[string]bool) // blobs that may not be needed
	for digest, data := range r.Blobs {
		if got := sum(data); got != digest {
			return fault.New(fault.Internal, "write ledger", l.path, fmt.Errorf("bytes of %s were given as those of %s", got, digest))
		}
		// An empty file must not be a nil value, which reads as none.
		if err := blobs.Put([]byte(digest), append([]byte{}, data...)); err != nil {
			return err
		}
		doubtful[digest] = true
	}
	for _, name := range r.Delete {
		k := Key{r.Scope, name}
		if err := l.refer(b, k, nil, doubtful); err != nil {
			return err
		}
		if err := b.Bucket(unitsBucket).Delete(k.bytes()); err != nil {
			return err
		}
	}
	for _, m := range r.Put {
		k := Key{m.Scope, m.Unit}
		if err := l.refer(b, k, m.Found, doubtful); err != nil {
			return err
		}
		if err := put(b.Bucket(unitsBucket), k.bytes(), m); err != nil {
			return fmt.Errorf("memory of %s: %w", k.bytes(), err)
		}
	}
	if r.Manager != nil {
		err := l.manager(b, r.Scope, func(m *plan.Manager) {
			account := m.Account
			*m = *r.Manager
			m.Account = account
		})
		if err != nil {
			return err
		}
	}
	return collect(b, doubtful)
}

// Account records whose manager that of the user scope is; nil for nobody's. It is
// durable when Account returns. Records of a loop leave it as it is.
func (l *Ledger) Account(a *plan.Account) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.guard("write", func() error {
		if err := l.here(); err != nil {
			return err
		}
		return l.db.Update(func(b *bolt.Tx) error {
			return l.manager(b, unit.User, func(m *plan.Manager) { m.Account = a })
		})
	})
}

// manager changes what is remembered of a scope's manager.
func (l *Ledger) manager(b *bolt.Tx, scope unit.Scope, change func(m *plan.Manager)) error {
	var m plan.Manager
	bucket, key := b.Bucket(managersBucket), []byte(scope)
	if v := bucket.Get(key); v != nil {
		data, err := unseal(key, v)
		if err == nil {
			err = json.Unmarshal(data, &m)
		}
		if err != nil {
			return l.damaged("%s %s: %w", managersBucket, key, err)
		}
	}
	change(&m)
	return put(bucket, key, m)
}

// refer makes the references of a unit those of found, and notes the blobs that
// it no longer refers to. It reads the old ones from the stored memory.
func (l *Ledger) refer(b *bolt.Tx, k Key, found map[string]plan.Entry, doubtful map[string]bool) error {
	var old struct {
		Found map[string]plan.Entry `json:"found"`
	}
	if v := b.Bucket(unitsBucket).Get(k.bytes()); v != nil {
		data, err := unseal(k.bytes(), v)
		if err == nil {
			err = json.Unmarshal(data, &old)
		}
		if err != nil {
			return l.damaged("%s %s: %w", unitsBucket, k.bytes(), err)
		}
	}
	before, after := needs(old.Found), needs(found)
	refs := b.Bucket(refsBucket)
	for _, digest := range slices.Sorted(maps.Keys(before)) {
		if after[digest] {
			continue
		}
		if err := refs.Delete(refKey(digest, k)); err != nil {
			return err
		}
		doubtful[digest] = true
	}
	for _, digest := range slices.Sorted(maps.Keys(after)) {
		if before[digest] {
			continue
		}
		if b.Bucket(blobsBucket).Get([]byte(digest)) == nil {
			return fault.New(fault.Internal, "write ledger", l.path,
				fmt.Errorf("memory of %s: the bytes of %s are neither given nor in the ledger", k.bytes(), digest))
		}
		if err := refs.Put(refKey(digest, k), nil); err != nil {
			return err
		}
	}
	return nil
}

func refKey(digest string, k Key) []byte { return append([]byte(digest+"/"), k.bytes()...) }

// needs returns the digests of the files in found.
func needs(found map[string]plan.Entry) map[string]bool {
	var set map[string]bool
	for _, e := range found {
		if e.Kind == plan.File {
			if set == nil {
				set = make(map[string]bool)
			}
			set[e.Digest] = true
		}
	}
	return set
}

// collect deletes those of the doubtful blobs that nothing refers to.
func collect(b *bolt.Tx, doubtful map[string]bool) error {
	refs := b.Bucket(refsBucket).Cursor()
	for digest := range doubtful {
		prefix := []byte(digest + "/")
		if k, _ := refs.Seek(prefix); bytes.HasPrefix(k, prefix) {
			continue
		}
		if err := b.Bucket(blobsBucket).Delete([]byte(digest)); err != nil {
			return err
		}
	}
	return nil
}

func put(bucket *bolt.Bucket, key []byte, v any) error {
	sealed, err := seal(key, v)
	if err != nil {
		return err
	}
	return bucket.Put(key, sealed)
}
