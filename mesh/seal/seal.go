// Package seal binds what controllers wrote to the place where they wrote it,
// and what a node is to have to the mesh that says so.
//
// A sealed value is what stands under one key of mesh state: what it says of
// itself (Place) and a body, signed together with the mesh's declaration key. The
// place holds mesh, key and revision, so a value that was copied to another key,
// kept and put back later, or written by anybody without the key does not open.
// Sum lets a reader tell that keys vanished or were exchanged: the last value of
// each commit holds the sum of everything that stands after it.
//
// A signed index is bytes and a signature, and so is what a runtime is to serve.
// The kinds of signature are of different texts, and one never passes for
// another. Everything here is pure
// and safe for concurrent use. Errors are *fault.Error of class refused: a
// signature or place that is not right is never accepted in part.
package seal

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"

	"stead/host/fault"
)

// What is put in front of a text before it is signed.
const (
	valueDomain = "stead sealed value 1\n"
	indexDomain = "stead index 1\n"
	toolsDomain = "stead tools 1\n"
)

// Place is where and as what a value was written.
type Place struct {
	Mesh     string `json:"mesh"`
	Key      string `json:"key"`
	Revision uint64 `json:"revision"`
	Deleted  bool   `json:"deleted,omitempty"` // it is a tombstone
	// Sum is that of the whole state after the commit of which this value is the
	// last; "" for the others.
	Sum string `json:"sum,omitempty"`
}

// Value returns what is stored: signature, place and body, one below the other.
func Value(key ed25519.PrivateKey, p Place, body []byte) []byte {
	head, _ := json.Marshal(p) // texts and numbers always encode
	text := slices.Concat(head, []byte("\n"), body)
	signature := ed25519.Sign(key, slices.Concat([]byte(valueDomain), text))
	return slices.Concat([]byte(base64.StdEncoding.EncodeToString(signature)), []byte("\n"), text)
}

// OpenValue checks a stored value against the place where it was found, of which
// Sum is not known, and returns its place as it was signed, and its body. The body
// is a part of stored.
func OpenValue(key ed25519.PublicKey, found Place, stored []byte) (Place, []byte, error) {
	refuse := func(why string) (Place, []byte, error) {
		return Place{}, nil, fault.New(fault.Refused, "open sealed value", found.Key, errors.New(why))
	}
	encoded, text, ok := bytes.Cut(stored, []byte("\n"))
	if !ok {
		return refuse("it is not sealed")
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(string(encoded))
	if err != nil || len(signature) != ed25519.SignatureSize {
		return refuse("it is not sealed")
	}
	if !ed25519.Verify(key, slices.Concat([]byte(valueDomain), text), signature) {
		return refuse("its seal is not of this mesh")
	}
	head, body, _ := bytes.Cut(text, []byte("\n"))
	var p Place
	if err := json.Unmarshal(head, &p); err != nil {
		return refuse("its place cannot be read")
	}
	switch {
	case p.Mesh != found.Mesh:
		return refuse("it was sealed for another mesh")
	case p.Key != found.Key:
		return refuse("it was sealed for the key " + strconv.Quote(p.Key))
	case p.Revision != found.Revision:
		return refuse("it was sealed for revision " + strconv.FormatUint(p.Revision, 10) + " and stands at " + strconv.FormatUint(found.Revision, 10))
	case p.Deleted != found.Deleted:
		return refuse("it was sealed as " + kind(p.Deleted) + " and stands as " + kind(found.Deleted))
	}
	return p, body, nil
}

func kind(deleted bool) string {
	if deleted {
		return "a tombstone"
	}
	return "a value"
}

// Stand is what stands under one key of a state: at which revision, and the Seal
// of the stored value. Seal is "" for the value that is to hold the sum.
type Stand struct {
	Revision uint64
	Seal     string
}

// Seal returns what no two values of a mesh have in common: the signature of a
// stored value, as it stands there.
func Seal(stored []byte) string {
	encoded, _, _ := bytes.Cut(stored, []byte("\n"))
	return string(encoded)
}

// Sum is of all keys of a state, tombstones too: at which revisions they are, and
// what stands there. So a value cannot be exchanged for one that was sealed for
// the same place in another life of the store.
func Sum(all map[string]Stand) string {
	h := sha256.New()
	var line []byte
	for _, key := range slices.Sorted(maps.Keys(all)) {
		line = append(line[:0], key...)
		line = append(line, ' ')
		line = strconv.AppendUint(line, all[key].Revision, 10)
		line = append(line, ' ')
		line = append(line, all[key].Seal...)
		line = append(line, '\n')
		h.Write(line)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Index returns the signature of the bytes of an index.
func Index(key ed25519.PrivateKey, index []byte) []byte {
	return ed25519.Sign(key, slices.Concat([]byte(indexDomain), index))
}

// CheckIndex returns an error of class refused unless signature is that of index.
func CheckIndex(key ed25519.PublicKey, index, signature []byte) error {
	return check(key, indexDomain, "index", index, signature)
}

// Tools returns the signature of the bytes of what a runtime is to serve.
func Tools(key ed25519.PrivateKey, tools []byte) []byte {
	return ed25519.Sign(key, slices.Concat([]byte(toolsDomain), tools))
}

// CheckTools returns an error of class refused unless signature is that of tools.
func CheckTools(key ed25519.PublicKey, tools, signature []byte) error {
	return check(key, toolsDomain, "tools", tools, signature)
}

func check(key ed25519.PublicKey, domain, what string, text, signature []byte) error {
	if len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, slices.Concat([]byte(domain), text), signature) {
		return fault.New(fault.Refused, "check "+what, "", errors.New("it is not signed by this mesh"))
	}
	return nil
}
