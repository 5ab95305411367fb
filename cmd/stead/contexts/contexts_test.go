package contexts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/identity"
	"stead/mesh/wire"
)

// mint makes credentials of a new user of keys.
func mint(t *testing.T, keys *identity.Mesh, role identity.Role, name string) identity.Credentials {
	t.Helper()
	c, err := keys.Mint(identity.Request{Role: role, Name: name, URLs: []string{"tls://127.0.0.1:4222"}})
	require.NoError(t, err)
	return c
}

func newMesh(t *testing.T) *identity.Mesh {
	t.Helper()
	keys, err := identity.Create(filepath.Join(t.TempDir(), "mesh"), time.Now())
	require.NoError(t, err)
	return keys
}

func open(t *testing.T) *Store {
	t.Helper()
	dir := t.TempDir()
	s, err := New(Options{Config: filepath.Join(dir, "config", "stead"), State: filepath.Join(dir, "state", "stead"), NATS: filepath.Join(dir, "config", "nats", "context")})
	require.NoError(t, err)
	return s
}

func TestPlacesFollowTheRulesOfXDG(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want Options
	}{
		"home":     {map[string]string{"HOME": "/users/a"}, Options{"/users/a/.config/stead", "/users/a/.local/state/stead", "/users/a/.config/nats/context"}},
		"set":      {map[string]string{"HOME": "/users/a", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"}, Options{"/c/stead", "/s/stead", "/c/nats/context"}},
		"relative": {map[string]string{"HOME": "/users/a", "XDG_CONFIG_HOME": "c"}, Options{"/users/a/.config/stead", "/users/a/.local/state/stead", "/users/a/.config/nats/context"}},
		"no home":  {map[string]string{"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"}, Options{"/c/stead", "/s/stead", "/c/nats/context"}},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := Places(func(v string) string { return c.env[v] })
			require.NoError(t, err)
			require.Equal(t, c.want, o)
		})
	}
	_, err := Places(func(string) string { return "" })
	require.Equal(t, fault.Failed, fault.ClassOf(err))
	require.NotEmpty(t, fault.HintOf(err))
}

func TestTheFirstContextIsTheCurrentOne(t *testing.T) {
	s, keys := open(t), newMesh(t)
	_, err := s.Find("")
	require.True(t, fault.Is(err, fault.NotFound))
	require.EqualError(t, err, "find context: no context is chosen")
	require.Contains(t, fault.HintOf(err), "stead context add")

	c, err := s.Add(t.Context(), "home", mint(t, keys, identity.Operator, "alice"))
	require.NoError(t, err)
	require.True(t, c.Current)
	c, err = s.Add(t.Context(), "look", mint(t, keys, identity.Viewer, "alice"))
	require.NoError(t, err)
	require.False(t, c.Current)

	c, err = s.Find("")
	require.NoError(t, err)
	require.Equal(t, "home", c.Name)
	_, err = s.Use(t.Context(), "look")
	require.NoError(t, err)
	c, err = s.Find("")
	require.NoError(t, err)
	require.Equal(t, identity.Viewer, c.Credentials.Role)

	all, err := s.List()
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, "home", all[0].Name)
	require.True(t, all[1].Current)

	byPath, err := s.Find(all[0].Path)
	require.NoError(t, err)
	require.Equal(t, identity.Operator, byPath.Credentials.Role)
	_, err = s.Find("./gone.json")
	require.EqualError(t, err, "read credentials: ./gone.json: there is no such file")
	require.NotEmpty(t, fault.HintOf(err))
}

func TestAContextThatIsNotThereNamesThoseThatAre(t *testing.T) {
	s, keys := open(t), newMesh(t)
	_, err := s.Add(t.Context(), "home", mint(t, keys, identity.Operator, "alice"))
	require.NoError(t, err)
	_, err = s.Find("hoem")
	require.EqualError(t, err, "find context: hoem: there is no context of that name")
	require.Contains(t, fault.HintOf(err), "home")
	_, err = s.Use(t.Context(), "hoem")
	require.True(t, fault.Is(err, fault.NotFound))
	require.True(t, fault.Is(s.Remove(t.Context(), "hoem"), fault.NotFound))
	_, err = s.Find("..")
	require.True(t, fault.Is(err, fault.Invalid), "a name leads nowhere else")
	_, err = s.Add(t.Context(), "../x", mint(t, keys, identity.Operator, "alice"))
	require.True(t, fault.Is(err, fault.Invalid))

	require.NoError(t, os.Remove(s.path("home")))
	_, err = s.Find("")
	require.EqualError(t, err, "find context: home: it is the current context, and its file is gone")
	c, err := s.Add(t.Context(), "new", mint(t, keys, identity.Operator, "bob"))
	require.NoError(t, err)
	require.True(t, c.Current, "a current context that is gone is none")
}

func TestAddReplacesTheSameUserAlone(t *testing.T) {
	s, keys := open(t), newMesh(t)
	_, err := s.Add(t.Context(), "home", mint(t, keys, identity.Operator, "alice"))
	require.NoError(t, err)
	renewed := mint(t, keys, identity.Operator, "alice")
	_, err = s.Add(t.Context(), "home", renewed)
	require.NoError(t, err)
	c, err := s.Find("home")
	require.NoError(t, err)
	require.Equal(t, renewed.PublicKey(), c.Credentials.PublicKey())
	for _, other := range []identity.Credentials{
		mint(t, keys, identity.Operator, "bob"), mint(t, keys, identity.Viewer, "alice"), mint(t, newMesh(t), identity.Operator, "alice"),
	} {
		_, err = s.Add(t.Context(), "home", other)
		require.True(t, fault.Is(err, fault.Conflict))
	}
	require.NoError(t, os.WriteFile(c.Path, []byte("{"), 0o600))
	_, err = s.Add(t.Context(), "home", renewed)
	require.NoError(t, err, "what is damaged is replaced")
}

func TestFilesBelongToTheirOwnerAlone(t *testing.T) {
	s, keys := open(t), newMesh(t)
	alice := mint(t, keys, identity.Operator, "alice")
	_, err := s.Add(t.Context(), "home", alice)
	require.NoError(t, err)
	require.NoError(t, s.Remember(t.Context(), alice, Sight{"e", 1, map[string]wire.Mark{"web": "m"}}))
	for _, dir := range []string{s.config, s.state} {
		require.NoError(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
			require.NoError(t, err)
			require.Zero(t, info.Mode().Perm()&0o077, path)
			return nil
		}))
	}
	require.NoError(t, os.Chmod(s.path("home"), 0o640))
	_, err = s.Find("home")
	require.True(t, fault.Is(err, fault.Refused))
	all, err := s.List()
	require.NoError(t, err)
	require.Error(t, all[0].Err, "a list shows what is wrong with one, and the others")
}

func TestRemoveForgetsWhatOnlyThatUserSaw(t *testing.T) {
	s, keys := open(t), newMesh(t)
	alice := mint(t, keys, identity.Operator, "alice")
	for _, name := range []string{"one", "two"} {
		_, err := s.Add(t.Context(), name, alice)
		require.NoError(t, err)
	}
	require.NoError(t, s.Remember(t.Context(), alice, Sight{"e", 1, map[string]wire.Mark{"web": "m"}}))
	require.NoError(t, s.Remove(t.Context(), "one"))
	m, err := s.Marks(alice)
	require.NoError(t, err)
	require.Len(t, m.Seen, 1, "another context is of the same user")
	name, err := s.Current()
	require.NoError(t, err)
	require.Empty(t, name)
	require.NoError(t, s.Remove(t.Context(), "two"))
	m, err = s.Marks(alice)
	require.NoError(t, err)
	require.Empty(t, m.Seen)
}

func TestMarksAreOfOneUserAndOneEpoch(t *testing.T) {
	s, keys := open(t), newMesh(t)
	alice, bob := mint(t, keys, identity.Operator, "alice"), mint(t, keys, identity.Operator, "bob")
	remember := func(now Sight) { t.Helper(); require.NoError(t, s.Remember(t.Context(), alice, now)) }
	marks := func(c identity.Credentials) Marks {
		t.Helper()
		m, err := s.Marks(c)
		require.NoError(t, err)
		return m
	}
	remember(Sight{"e1", 5, map[string]wire.Mark{"web": "w5", "db": "d5"}})
	remember(Sight{"e1", 7, map[string]wire.Mark{"web": "w7"}})
	require.Equal(t, Marks{"e1", map[string]wire.Mark{"web": "w7", "db": "d5"}}, marks(alice))
	require.Empty(t, marks(bob).Seen)
	remember(Sight{"e1", 6, map[string]wire.Mark{"web": "w6", "db": "d6"}})
	require.Equal(t, map[string]wire.Mark{"web": "w7", "db": "d6"}, marks(alice).Seen, "a command that ends late knows less")
	remember(Sight{"e1", 8, map[string]wire.Mark{"db": ""}})
	require.Equal(t, map[string]wire.Mark{"web": "w7"}, marks(alice).Seen, "what is not declared any more is not remembered")
	remember(Sight{"e2", 3, map[string]wire.Mark{"new": "n"}})
	require.Equal(t, Marks{"e2", map[string]wire.Mark{"new": "n"}}, marks(alice), "generations may have gone back with the epoch")
}

func TestMarksAreBounded(t *testing.T) {
	s, alice := open(t), mint(t, newMesh(t), identity.Operator, "alice")
	first, many := map[string]wire.Mark{"old": "m"}, map[string]wire.Mark{}
	for i := range MaxMarks {
		many[fmt.Sprintf("%063d", i)] = wire.Mark(fmt.Sprintf("%032d", i))
	}
	require.NoError(t, s.Remember(t.Context(), alice, Sight{"e", 1, first}))
	require.NoError(t, s.Remember(t.Context(), alice, Sight{"e", 2, many}))
	m, err := s.Marks(alice)
	require.NoError(t, err)
	require.Len(t, m.Seen, MaxMarks)
	require.NotContains(t, m.Seen, "old")
}

func TestDamagedMarksAreAnErrorAndWrittenAnew(t *testing.T) {
	s, alice := open(t), mint(t, newMesh(t), identity.Operator, "alice")
	now := Sight{"e", 1, map[string]wire.Mark{"web": "m"}}
	require.NoError(t, s.Remember(t.Context(), alice, now))
	path, err := s.marksOf(alice)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(`{"schema":1,"mar`), 0o600))
	_, err = s.Marks(alice)
	require.True(t, fault.Is(err, fault.Invalid))
	require.NoError(t, s.Remember(t.Context(), alice, now))
	m, err := s.Marks(alice)
	require.NoError(t, err)
	require.Len(t, m.Seen, 1)

	require.NoError(t, os.WriteFile(path, []byte(`{"schema":2}`), 0o600))
	require.True(t, fault.Is(s.Remember(t.Context(), alice, now), fault.Unsupported), "what a newer version wrote stays")
}

func TestMarksOfCredentialsThatNameAnotherPlaceAreRefused(t *testing.T) {
	s, alice := open(t), mint(t, newMesh(t), identity.Operator, "alice")
	alice.Mesh = "../../x"
	require.True(t, fault.Is(s.Remember(t.Context(), alice, Sight{"e", 1, map[string]wire.Mark{"web": "m"}}), fault.Invalid))
	_, err := s.Marks(alice)
	require.True(t, fault.Is(err, fault.Invalid))
}

func TestManyCommandsRememberAtOnce(t *testing.T) {
	s, alice := open(t), mint(t, newMesh(t), identity.Operator, "alice")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			other, err := New(Options{Config: s.config, State: s.state, NATS: s.nats})
			if err == nil {
				err = other.Remember(t.Context(), alice, Sight{"e", uint64(i + 1), map[string]wire.Mark{fmt.Sprintf("d%d", i): "m"}})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	m, err := s.Marks(alice)
	require.NoError(t, err)
	require.Len(t, m.Seen, 20, "none overwrote another's")
}

func TestALockThatIsHeldIsNamed(t *testing.T) {
	s, alice := open(t), mint(t, newMesh(t), identity.Operator, "alice")
	err := locked(t.Context(), s.state, func() error {
		ctx, cancel := contextWithin(t)
		defer cancel()
		return s.Remember(ctx, alice, Sight{"e", 1, map[string]wire.Mark{"web": "m"}})
	})
	require.True(t, fault.Is(err, fault.Unavailable))
	require.Contains(t, err.Error(), "another command holds it")
}

func contextWithin(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), 50*time.Millisecond)
}
