package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"stead/host/accept"
	"stead/host/fault"
	"stead/host/folder"
	"stead/host/ledger"
	"stead/host/reconcile"
	"stead/host/shape"
)

const (
	// reread is how often the folder is read although nothing was heard of it.
	reread = 5 * time.Minute
	// grace is how long a declaration must have been gone from a folder, which
	// is otherwise quiet, before that counts as withdrawn: editors and copies
	// take files away for a moment.
	grace = 2 * time.Second
	// patient is how long a file may be open for writing before the status says
	// that it is waited for.
	patient = 5 * time.Second
)

// declarer takes a whole accepted set.
type declarer interface {
	Declare(ctx context.Context, set reconcile.Set) error
}

// keeper owns the accepted declarations: it reads the folder, gives each
// declaration its uid and generation, makes them durable, and hands the set to
// the loop. What was accepted stays in force until another reading is.
type keeper struct {
	host     *Host
	book     *ledger.Ledger
	loop     declarer
	source   *folder.Source
	accepted map[string]held
	missing  map[string]time.Time // declarations not in the folder, since when
	moving   time.Time            // since when the folder has been in the middle of a change; zero: it is not
	read     chan struct{}        // closed when the folder was read once
	now      func() time.Time
}

// held is an accepted declaration. Its service is nil when what was accepted
// cannot be read by this version: the unit is not given back for that.
type held struct {
	id      accept.Identity
	service *shape.Service
	why     string // it cannot be read
}

func newKeeper(h *Host, book *ledger.Ledger, loop declarer, state ledger.State) (*keeper, error) {
	source, err := folder.New(folder.Options{Dir: h.o.Folder, Logger: h.log})
	if err != nil {
		return nil, err
	}
	k := &keeper{host: h, book: book, loop: loop, source: source, accepted: make(map[string]held), missing: make(map[string]time.Time),
		read: make(chan struct{}), now: time.Now}
	var kept []string
	for name, id := range state.Declarations {
		if !id.Of("") {
			kept = append(kept, name)
		}
		s, err := shape.FromCanonical(id.Body)
		why := ""
		if err != nil {
			h.log.Error("accepted declaration cannot be read, its unit is left as it is", "declaration", name, "error", err)
			why = err.Error()
		}
		k.accepted[name] = held{id: id, service: s, why: why}
	}
	slices.Sort(kept)
	h.mu.Lock()
	h.source.Kept = kept
	h.mu.Unlock()
	return k, nil
}

// run hands over what was accepted before, then follows the folder.
func (k *keeper) run(ctx context.Context) error {
	if err := k.loop.Declare(ctx, k.set()); err != nil {
		return ignore(err)
	}
	declaring(len(k.accepted))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return k.source.Run(ctx) })
	group.Go(func() error { return k.follow(ctx) })
	return group.Wait()
}

func (k *keeper) follow(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.source.Wake():
		case <-timer.C:
		}
		next, err := k.turn(ctx)
		if err != nil {
			return ignore(err)
		}
		select {
		case <-k.read:
		default:
			close(k.read)
		}
		timer.Reset(next)
	}
}

// turn reads the folder once and returns when to read it again.
func (k *keeper) turn(ctx context.Context) (time.Duration, error) {
	r, err := k.source.Read(ctx)
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	k.warn(r.Warnings)
	if r.Kind != folder.Unsettled {
		k.moving = time.Time{}
	}
	trouble, problems, next := "", []string(nil), reread
	switch {
	case err != nil:
		trouble = err.Error()
	case r.Kind == folder.Unsettled && !k.overdue():
		k.taking(true)
		return reread, nil // the source wakes when it is worth another look
	case r.Kind != folder.OK:
		trouble = refusals[r.Kind]
		for _, p := range r.Problems {
			problems = append(problems, p.String())
		}
	default:
		next, err = k.accept(ctx, r.Services)
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if err != nil {
			trouble = err.Error()
			next = 5 * time.Second
			if !fault.ClassOf(err).Retry() && !fault.Is(err, fault.Internal) {
				return 0, err
			}
		}
	}
	k.tell(trouble, problems)
	return next, nil
}

// overdue reports whether the folder has been in the middle of a change for so
// long that people must be told what it waits for.
func (k *keeper) overdue() bool {
	if k.moving.IsZero() {
		k.moving = k.now()
	}
	return k.now().Sub(k.moving) >= patient
}

// accept takes a good reading over and returns when to look again.
func (k *keeper) accept(ctx context.Context, services []*shape.Service) (time.Duration, error) {
	now := k.now()
	var tx ledger.Tx
	next := make(map[string]held, len(services))
	for _, s := range services {
		h, changed := k.identify(s)
		if changed {
			tx.Put = append(tx.Put, h.id)
		}
		next[s.Name] = h
	}
	wait, kept := reread, []string(nil)
	for name, old := range k.accepted {
		if _, there := next[name]; there {
			delete(k.missing, name)
			continue
		}
		if !old.id.Of("") {
			next[name], kept = old, append(kept, name) // a mesh declared it, so no folder withdraws it
			continue
		}
		if _, known := k.missing[name]; !known {
			k.missing[name] = now
		}
		if left := grace - now.Sub(k.missing[name]); left > 0 && !taken(next, old) {
			next[name], wait = old, min(wait, left)
			continue
		}
		delete(k.missing, name)
		tx.Delete = append(tx.Delete, name)
	}
	slices.Sort(tx.Delete)
	if err := k.book.Commit(tx); err != nil {
		return 0, err
	}
	if len(tx.Put)+len(tx.Delete) > 0 {
		k.host.log.Info("accepted", "declarations", len(next), "changed", len(tx.Put), "withdrawn", tx.Delete)
		declaring(len(next))
	}
	k.accepted = next
	k.host.mu.Lock()
	slices.Sort(kept)
	k.host.source.Accepted, k.host.source.Leaving, k.host.source.Kept = now, slices.Sorted(maps.Keys(k.missing)), kept
	k.host.mu.Unlock()
	k.taking(true) // the loop may be in the middle of a pass
	return wait, k.loop.Declare(ctx, k.set())
}

// refusals say why a reading was not taken over.
var refusals = map[folder.Kind]string{
	folder.Missing: "the folder is missing, which withdraws nothing",
	folder.Empty:   "the folder holds no declaration file, which withdraws nothing",
	folder.Bad:     "it has mistakes, and nothing of this reading was accepted",

	folder.Unsettled: "it is being written, and is taken in when that is over",
}

// taken reports whether another declaration has the unit of old now: a
// declaration that got a new name need not wait.
func taken(next map[string]held, old held) bool {
	for _, h := range next {
		if old.service != nil && h.service != nil && h.service.Unit == old.service.Unit && h.service.Scope == old.service.Scope {
			return true
		}
	}
	return false
}

// identify gives s the uid of its name, a new one if the name is new, and a
// generation that rises when what it declares changes. What a mesh declared is
// the folder's from now on: the same declaration where it says the same, else
// another one.
func (k *keeper) identify(s *shape.Service) (held, bool) {
	digest := s.Digest()
	old, known := k.accepted[s.Name]
	ours := known && old.id.Of("")
	if known && old.id.Digest == digest {
		id := old.id
		id.Epoch, id.Kept = "", false
		return held{id: id, service: s}, !ours
	}
	id := accept.Identity{UID: old.id.UID, Name: s.Name, Generation: old.id.Generation + 1, Digest: digest, Body: s.Canonical()}
	if !ours {
		id.UID, id.Generation = newUID(), 1
	}
	return held{id: id, service: s}, true
}

// newUID makes an identity that no other declaration has.
func newUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

func (k *keeper) set() reconcile.Set {
	var set reconcile.Set
	for name, h := range k.accepted {
		if h.service == nil {
			set.Leave = append(set.Leave, reconcile.Left{Name: name, Scope: shape.ScopeOf(h.id.Body), UID: h.id.UID, Generation: h.id.Generation, Why: h.why})
			continue
		}
		set.Declared = append(set.Declared, reconcile.Declared{Service: h.service, UID: h.id.UID, Generation: h.id.Generation})
	}
	slices.SortFunc(set.Declared, func(a, b reconcile.Declared) int { return cmp.Compare(a.Service.Name, b.Service.Name) })
	return set
}

// tell makes the state of the source visible, and logs it once for each change.
func (k *keeper) tell(trouble string, problems []string) {
	k.host.mu.Lock()
	before := k.host.source
	k.host.source.Read, k.host.source.Trouble, k.host.source.Problems, k.host.source.Taking = time.Now(), trouble, problems, false
	k.host.mu.Unlock()
	if before.Trouble == trouble && slices.Equal(before.Problems, problems) {
		return
	}
	if trouble == "" {
		k.host.log.Info("folder is well again", "folder", k.host.o.Folder)
		return
	}
	k.host.log.Warn("folder not accepted", "folder", k.host.o.Folder, "trouble", trouble, "problems", problems)
}

// taking makes visible that the reports are behind the folder.
func (k *keeper) taking(yes bool) {
	k.host.mu.Lock()
	k.host.source.Taking = yes
	k.host.mu.Unlock()
}

// warn makes visible what a reading passed over, and logs it once.
func (k *keeper) warn(warnings []string) {
	k.host.mu.Lock()
	before := k.host.source.Warnings
	k.host.source.Warnings = warnings
	k.host.mu.Unlock()
	for _, w := range warnings {
		if !slices.Contains(before, w) {
			k.host.log.Warn("passed over in the folder", "warning", w)
		}
	}
}

// Check reads a folder of declarations as a host would and returns what it
// declares and what it passes over, or all that is wrong with it. It needs no
// rights but to read.
func Check(ctx context.Context, dir string, log *slog.Logger) (services []*shape.Service, warnings []string, err error) {
	source, err := folder.New(folder.Options{Dir: dir, Logger: log})
	if err != nil {
		return nil, nil, err
	}
	r, err := source.Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	if r.Kind != folder.OK {
		return nil, r.Warnings, r.Problems.Err()
	}
	return r.Services, r.Warnings, nil
}
