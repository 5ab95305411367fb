package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash/crc32"
)

// seal returns v as it is stored under key: a checksum of both, then JSON.
// bbolt itself checks only its two meta pages.
func seal(key []byte, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(data)), checksum(key, data)), data...), nil
}

func unseal(key, stored []byte) ([]byte, error) {
	if len(stored) < 4 || binary.BigEndian.Uint32(stored) != checksum(key, stored[4:]) {
		return nil, errors.New("its checksum does not hold")
	}
	return stored[4:], nil
}

func checksum(key, data []byte) uint32 {
	t := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Checksum(key, t), t, data)
}

// sum is the name of a blob.
func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}
