package ledger

import (
	"errors"
	"fmt"
	"strconv"

	bolt "go.etcd.io/bbolt"

	"stead/host/fault"
)

// Schema is the version of the ledger's form that this stead writes. It reads
// the version before it too, and rewrites that at Open.
//
// Version 2 knows from where a declaration came: from a folder, or from an epoch of
// a mesh. A host of version 1 would take those of a mesh for its folder's, and
// give them back because they are not in it.
//
// Version 3 has declared files among the units, by their paths. A host of version 2
// would ask its manager for units of such names, which fails every pass.
const Schema = 3

// buckets of the file.
var (
	metaBucket         = []byte("meta")         // "schema" → version, decimal
	declarationsBucket = []byte("declarations") // name → accept.Identity
	meshBucket         = []byte("mesh")         // "held" → accept.Held
	unitsBucket        = []byte("units")        // scope/unit → plan.Memory
	blobsBucket        = []byte("blobs")        // digest → bytes
	refsBucket         = []byte("refs")         // digest/scope/unit → nothing: which Memory.Found needs the blob
	managersBucket     = []byte("managers")     // scope → plan.Manager

	schemaKey = []byte("schema")
	heldKey   = []byte("held")
)

func allBuckets() [][]byte {
	return [][]byte{metaBucket, declarationsBucket, meshBucket, unitsBucket, blobsBucket, refsBucket, managersBucket}
}

// upgrade brings a file of the version before to Schema in one transaction, and
// refuses any other. What version 2 holds reads as it is: no file is in it.
func (l *Ledger) upgrade() error {
	found, err := l.version()
	if err != nil || found == Schema {
		return err
	}
	switch {
	case found > Schema:
		return l.refuse(found, "a newer stead wrote it", fmt.Sprintf("install a stead that reads ledger schema %d, or put back a backup that this one wrote", found))
	case found < Schema-1:
		return l.refuse(found, "it is too old", fmt.Sprintf("start a stead of ledger schema %d on it once, which brings it forward", found+1))
	}
	err = l.db.Update(func(tx *bolt.Tx) error {
		for _, b := range allBuckets() {
			if _, err := tx.CreateBucketIfNotExists(b); err != nil {
				return err
			}
		}
		return tx.Bucket(metaBucket).Put(schemaKey, []byte(strconv.Itoa(Schema)))
	})
	if err == nil {
		l.log.Info("ledger brought forward", "path", l.path, "from", found, "to", Schema)
	}
	return err
}

func (l *Ledger) refuse(found int, why, cure string) error {
	return fault.New(fault.Unsupported, "open ledger", l.path,
		fmt.Errorf("its schema is %d and this stead reads %d to %d: %s", found, Schema-1, Schema, why)).WithHint(cure)
}

// version reads the version stamp, and sees that a file of this version is
// whole.
func (l *Ledger) version() (found int, err error) {
	err = l.db.View(func(tx *bolt.Tx) error {
		meta := tx.Bucket(metaBucket)
		if meta == nil {
			return l.damaged("it has no %q", metaBucket)
		}
		if found, err = strconv.Atoi(string(meta.Get(schemaKey))); err != nil || found < 0 {
			return l.damaged("schema %.40q", meta.Get(schemaKey))
		}
		if found != Schema {
			return nil
		}
		var errs []error
		for _, b := range allBuckets() {
			if tx.Bucket(b) == nil {
				errs = append(errs, l.damaged("it has no %q", b))
			}
		}
		return errors.Join(errs...)
	})
	return found, err
}
