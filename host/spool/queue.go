package spool

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"stead/mesh/wire"
)

// Lost is the kind of the event that stands for events that were dropped.
const Lost = "lost"

// record is one place of the queue.
type record struct {
	Event wire.Event `json:"event"`
	// Lost counts the events that Event stands for, from the first to the last;
	// 0 for an event that is one itself.
	Lost  int       `json:"lost,omitempty"`
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
}

// Put adds events at the end, in their order, and replaces the notes of told; a
// nil note is taken away. All of it is durable when it returns nil, and none of
// it is there when it returns an error.
func (s *Spool) Put(events []wire.Event, told map[string][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(events)+len(told) == 0 {
		return nil
	}
	count := s.count
	err := s.update(func(tx *bolt.Tx) error {
		bucket := tx.Bucket(eventsBucket)
		for _, e := range events {
			n, err := bucket.NextSequence()
			if err == nil {
				err = put(bucket, key(n), record{Event: e})
			}
			if err != nil {
				return err
			}
		}
		count += len(events)
		dropped, err := s.drop(bucket, count-s.bound)
		count -= dropped
		return errors.Join(err, note(tx.Bucket(toldBucket), told))
	})
	if err == nil {
		s.count = count
	}
	return err
}

func note(bucket *bolt.Bucket, told map[string][]byte) error {
	var errs []error
	for name, data := range told {
		if data == nil {
			errs = append(errs, bucket.Delete([]byte(name)))
			continue
		}
		errs = append(errs, bucket.Put([]byte(name), seal([]byte(name), data)))
	}
	return errors.Join(errs...)
}

// drop makes over places free, from the front but behind what is being sent, and
// puts one lost event in the place of the last of them. It returns how many
// places are fewer.
func (s *Spool) drop(bucket *bolt.Bucket, over int) (int, error) {
	if over <= 0 {
		return 0, nil
	}
	var loss record
	var places [][]byte
	c := bucket.Cursor()
	for k, v := c.Seek(key(s.taken + 1)); k != nil && len(places) <= over; k, v = c.Next() {
		r, err := recordOf(k, v)
		if err != nil {
			return 0, err
		}
		loss.add(r)
		places = append(places, slices.Clone(k))
	}
	if len(places) == 0 {
		return 0, nil
	}
	for _, k := range places {
		if err := bucket.Delete(k); err != nil {
			return 0, err
		}
	}
	loss.Event.Text = fmt.Sprintf("%d events from %s to %s were lost: no controller took them, and a node keeps %d",
		loss.Lost, loss.First.UTC().Format(time.DateTime), loss.Last.UTC().Format(time.DateTime), s.bound)
	return len(places) - 1, put(bucket, places[len(places)-1], loss)
}

// add counts r among what was lost.
func (l *record) add(r record) {
	if r.Lost == 0 {
		r.Lost, r.First, r.Last = 1, r.Event.At, r.Event.At
	}
	if l.Lost == 0 || r.First.Before(l.First) {
		l.First = r.First
	}
	if r.Last.After(l.Last) {
		l.Last = r.Last
	}
	l.Lost += r.Lost
	// Another id whenever it says something else: it may have been sent before.
	l.Event = wire.Event{ID: r.Event.ID + "+", At: l.Last, Source: r.Event.Source, Node: r.Event.Node, Kind: Lost}
}

// Next returns events from the front, at most so many and at most that many
// bytes of them as JSON but for the first; none when there are none. It returns
// the same ones, and perhaps more, until Done.
func (s *Spool) Next(most, bytes int) (events []wire.Event, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	through := s.done
	err = guard(func() error {
		return s.db.View(func(tx *bolt.Tx) error {
			c := tx.Bucket(eventsBucket).Cursor()
			for k, v := c.Seek(key(s.done + 1)); k != nil && len(events) < most; k, v = c.Next() {
				r, err := recordOf(k, v)
				if err != nil {
					return err
				}
				if bytes -= len(v); bytes < 0 && len(events) > 0 {
					break
				}
				events, through = append(events, r.Event), binary.BigEndian.Uint64(k)
			}
			return nil
		})
	})
	if err != nil {
		return nil, s.fault("read", err)
	}
	s.taken, s.sent = through, len(events)
	return events, nil
}

// Done says that what Next returned last was acknowledged. It touches no disk.
func (s *Spool) Done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done, s.count, s.sent = s.taken, s.count-s.sent, 0
}

// Len is how many events wait.
func (s *Spool) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// Sync takes what was acknowledged out of the file.
func (s *Spool) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone >= s.done {
		return nil
	}
	return s.update(func(*bolt.Tx) error { return nil })
}

// update changes the file in one transaction, in which what was acknowledged
// goes too. The caller holds mu.
func (s *Spool) update(change func(tx *bolt.Tx) error) error {
	done := s.done
	err := guard(func() error {
		return s.db.Update(func(tx *bolt.Tx) error {
			c := tx.Bucket(eventsBucket).Cursor()
			for k, _ := c.First(); k != nil && binary.BigEndian.Uint64(k) <= done; k, _ = c.First() {
				if err := c.Delete(); err != nil {
					return err
				}
			}
			return change(tx)
		})
	})
	if err == nil {
		s.gone = done
	}
	return s.fault("write", err)
}

// Told returns every note, by name.
func (s *Spool) Told() (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string][]byte{}
	err := guard(func() error {
		return s.db.View(func(tx *bolt.Tx) error {
			return tx.Bucket(toldBucket).ForEach(func(k, v []byte) error {
				data, err := unseal(k, v)
				all[string(k)] = slices.Clone(data)
				return err
			})
		})
	})
	return all, s.fault("read", err)
}

func key(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func put(bucket *bolt.Bucket, k []byte, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return bucket.Put(k, seal(k, data))
}

func recordOf(k, v []byte) (record, error) {
	var r record
	data, err := unseal(k, v)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	return r, err
}

// seal puts a checksum of key and data in front: bbolt itself checks only its
// two meta pages.
func seal(key, data []byte) []byte {
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(data)), checksum(key, data)), data...)
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
