package identity_test

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/identity"
)

// start of the year in which the tests of certificates play.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func clock(at *time.Time) func() time.Time { return func() time.Time { return *at } }

func TestKeysAreMadeOnceAndOpenedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	_, err := identity.Open(dir)
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
	m, err := identity.Create(dir, noon)
	require.NoError(t, err)
	require.Regexp(t, `^[a-z0-9]{26}$`, m.ID())
	again, err := identity.Open(dir)
	require.NoError(t, err)
	require.Equal(t, m.ID(), again.ID())
	require.Equal(t, m.CA(), again.CA())
	require.Equal(t, m.DeclarationKey(), again.DeclarationKey())
	_, err = identity.Create(dir, noon)
	require.True(t, fault.Is(err, fault.Conflict), "%v", err)
	same, err := identity.Open(dir)
	require.NoError(t, err)
	require.Equal(t, m.ID(), same.ID(), "the keys of a mesh were overwritten")

	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.Mkdir(empty, 0o700))
	other, err := identity.Create(empty, noon)
	require.NoError(t, err)
	require.NotEqual(t, m.ID(), other.ID())
	require.NotEqual(t, m.DeclarationKey(), other.DeclarationKey())
}

// TestKeysAreMadeByOne: of those who make the keys of one folder at a time one
// succeeds, and its keys are the ones that stay.
func TestKeysAreMadeByOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	made := make(chan *identity.Mesh, 8)
	for range cap(made) {
		go func() {
			m, err := identity.Create(dir, noon)
			if err != nil && !fault.Is(err, fault.Conflict) {
				t.Error(err)
			}
			made <- m
		}()
	}
	var winners []string
	for range cap(made) {
		if m := <-made; m != nil {
			winners = append(winners, m.ID())
		}
	}
	m, err := identity.Open(dir)
	require.NoError(t, err)
	require.Equal(t, []string{m.ID()}, winners)
}

func TestKeysAreTheirOwnersAlone(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "keys")
	m, err := identity.Create(dir, noon)
	require.NoError(t, err)
	at := noon
	_, err = m.ServerTLS([]string{"127.0.0.1"}, clock(&at))
	require.NoError(t, err)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	have, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range have {
		names = append(names, e.Name())
		info, err := e.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), e.Name())
	}
	require.Equal(t, []string{"ca.key.pem", "ca.pem", "keys.json", "operator.seed", "server.pem"}, names)
	left, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Len(t, left, 1, "something was left beside the folder")

	require.NoError(t, os.Remove(filepath.Join(dir, "operator.seed")), "it may be kept elsewhere")
	_, err = identity.Open(dir)
	require.NoError(t, err)
	for _, file := range []string{"keys.json", "ca.pem", "ca.key.pem"} {
		path := filepath.Join(dir, file)
		require.NoError(t, os.Chmod(path, 0o640))
		_, err := identity.Open(dir)
		require.True(t, fault.Is(err, fault.Refused), "%s: %v", file, err)
		require.NoError(t, os.Chmod(path, 0o600))
	}
}

func TestKeysThatAreNotWholeAreNotUsed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	_, err := identity.Create(dir, noon)
	require.NoError(t, err)
	path := filepath.Join(dir, "keys.json")
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	for want, text := range map[string]string{
		"invalid":     string(good[:len(good)/2]),
		"unsupported": strings.Replace(string(good), `"schema": 1`, `"schema": 2`, 1),
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := identity.Open(dir)
		require.Equal(t, fault.Class(want), fault.ClassOf(err), "%v", err)
	}
	require.NoError(t, os.WriteFile(path, []byte(`{"schema":1}`), 0o600))
	_, err = identity.Open(dir)
	require.True(t, fault.Is(err, fault.Invalid), "%v", err)
	require.NoError(t, os.WriteFile(path, good, 0o600))
	other, err := identity.Create(filepath.Join(t.TempDir(), "keys"), noon)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.pem"), []byte(other.CA()), 0o600))
	_, err = identity.Open(dir)
	require.True(t, fault.Is(err, fault.Invalid), "a CA with another's key: %v", err)
}

func TestServerCertificateIsKeptAndRenewed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	m, err := identity.Create(dir, noon)
	require.NoError(t, err)
	now := noon
	shown := func(c *tls.Config) *x509.Certificate {
		require.Equal(t, uint16(tls.VersionTLS13), c.MinVersion)
		pair, err := c.GetCertificate(nil)
		require.NoError(t, err)
		return pair.Leaf
	}
	config, err := m.ServerTLS([]string{"127.0.0.1", "controller.example"}, clock(&now))
	require.NoError(t, err)
	first := shown(config)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM([]byte(m.CA())))
	for _, host := range []string{"127.0.0.1", "controller.example"} {
		_, err := first.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: now})
		require.NoError(t, err, host)
	}
	_, err = first.Verify(x509.VerifyOptions{Roots: roots, DNSName: "other.example", CurrentTime: now})
	require.Error(t, err)

	now = noon.AddDate(0, 6, 0)
	same, err := m.ServerTLS([]string{"127.0.0.1", "controller.example"}, clock(&now))
	require.NoError(t, err)
	require.Equal(t, first.SerialNumber, shown(same).SerialNumber, "made anew without need")
	now = noon.AddDate(0, 9, 0)
	renewed := shown(config)
	require.NotEqual(t, first.SerialNumber, renewed.SerialNumber, "a server that runs on shows an old certificate")
	require.True(t, renewed.NotAfter.After(noon.AddDate(1, 8, 0)))
	fewer, err := m.ServerTLS([]string{"127.0.0.1"}, clock(&now))
	require.NoError(t, err)
	require.Empty(t, shown(fewer).DNSNames, "a name that is no longer the server's")
	_, err = m.ServerTLS(nil, clock(&now))
	require.True(t, fault.Is(err, fault.Invalid), "%v", err)
}

func TestServerCertificateOfAnotherMeshIsNotShown(t *testing.T) {
	now := noon
	var dirs []string
	var meshes []*identity.Mesh
	for range 2 {
		dir := filepath.Join(t.TempDir(), "keys")
		m, err := identity.Create(dir, noon)
		require.NoError(t, err)
		_, err = m.ServerTLS([]string{"127.0.0.1"}, clock(&now))
		require.NoError(t, err)
		dirs, meshes = append(dirs, dir), append(meshes, m)
	}
	foreign, err := os.ReadFile(filepath.Join(dirs[1], "server.pem"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dirs[0], "server.pem"), foreign, 0o600))
	config, err := meshes[0].ServerTLS([]string{"127.0.0.1"}, clock(&now))
	require.NoError(t, err)
	pair, err := config.GetCertificate(nil)
	require.NoError(t, err)
	block, _ := pem.Decode([]byte(meshes[0].CA()))
	ca, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	require.NoError(t, pair.Leaf.CheckSignatureFrom(ca))
}

func TestCredentialsAreReadAsWritten(t *testing.T) {
	m, path := mint(t, identity.Request{Role: identity.Host, Name: "ws1", URLs: []string{"tls://10.0.0.1:4222", "tls://[::1]:4222"}})
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	c, err := identity.ReadCredentials(path)
	require.NoError(t, err)
	require.Equal(t, identity.Host, c.Role)
	require.Equal(t, "ws1", c.Name)
	require.Equal(t, m.ID(), c.Mesh)
	require.Equal(t, []string{"tls://10.0.0.1:4222", "tls://[::1]:4222"}, c.URLs)
	require.Equal(t, "_INBOX."+c.PublicKey(), c.Inbox())
	require.True(t, c.Expires().IsZero())
	require.True(t, ed25519.Verify(c.DeclarationKey, []byte("set"), ed25519.Sign(m.DeclarationKey(), []byte("set"))))
	_, err = c.TLS()
	require.NoError(t, err)
}

func TestCredentialsThatDoNotFitAreRefused(t *testing.T) {
	_, path := mint(t, identity.Request{Role: identity.Host, Name: "ws1", URLs: []string{"tls://h:1"}})
	_, other := mint(t, identity.Request{Role: identity.Host, Name: "ws2", URLs: []string{"tls://h:1"}})
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	foreign := map[string]any{}
	text, err := os.ReadFile(other)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &foreign))
	for name, x := range map[string]struct {
		change func(map[string]any)
		class  fault.Class
	}{
		"newer":                {func(c map[string]any) { c["schema"] = 2 }, fault.Unsupported},
		"another name":         {func(c map[string]any) { c["name"] = "ws2" }, fault.Invalid},
		"a name with a dot":    {func(c map[string]any) { c["name"] = "ws1.x" }, fault.Invalid},
		"another role":         {func(c map[string]any) { c["role"] = "operator" }, fault.Invalid},
		"another's seed":       {func(c map[string]any) { c["seed"] = foreign["seed"] }, fault.Invalid},
		"another's JWT":        {func(c map[string]any) { c["jwt"] = foreign["jwt"] }, fault.Invalid},
		"no JWT":               {func(c map[string]any) { c["jwt"] = "" }, fault.Invalid},
		"no seed":              {func(c map[string]any) { c["seed"] = "" }, fault.Invalid},
		"no CA":                {func(c map[string]any) { c["ca"] = "x" }, fault.Invalid},
		"no URL":               {func(c map[string]any) { c["urls"] = []string{} }, fault.Invalid},
		"a URL without TLS":    {func(c map[string]any) { c["urls"] = []string{"nats://h:1"} }, fault.Invalid},
		"a URL with a user":    {func(c map[string]any) { c["urls"] = []string{"tls://u:p@h:1"} }, fault.Invalid},
		"no key of the mesh's": {func(c map[string]any) { c["declaration_key"] = "" }, fault.Invalid},
	} {
		c := map[string]any{}
		require.NoError(t, json.Unmarshal(good, &c))
		x.change(c)
		text, err := json.Marshal(c)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, text, 0o600))
		_, err = identity.ReadCredentials(path)
		require.Equal(t, x.class, fault.ClassOf(err), "%s: %v", name, err)
		require.Equal(t, x.class == fault.Unsupported, fault.HintOf(err) != "", "%s: what to do about it", name)
	}
	require.NoError(t, os.WriteFile(path, good, 0o600))
	_, err = identity.ReadCredentials(path)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(path, 0o644))
	_, err = identity.ReadCredentials(path)
	require.True(t, fault.Is(err, fault.Refused), "%v", err)
	_, err = identity.ReadCredentials(filepath.Dir(path))
	require.True(t, fault.Is(err, fault.Refused), "a folder: %v", err)
	_, err = identity.ReadCredentials(path + "x")
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
	require.NoError(t, os.WriteFile(path+"y", make([]byte, 300<<10), 0o600))
	_, err = identity.ReadCredentials(path + "y")
	require.True(t, fault.Is(err, fault.Invalid), "a huge file: %v", err)
}

func TestSecretsAreNotShown(t *testing.T) {
	_, path := mint(t, identity.Request{Role: identity.Operator, Name: "alice", URLs: []string{"tls://h:1"}})
	c, err := identity.ReadCredentials(path)
	require.NoError(t, err)
	seed := string(c.Seed)
	require.True(t, strings.HasPrefix(seed, "SU"))
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	logger.Info("x", "credentials", c, "seed", c.Seed, "pointer", &c)
	shown := log.String()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		shown += fmt.Sprintf(verb, c) + fmt.Sprintf(verb, c.Seed) + fmt.Sprintf(verb, []any{c})
	}
	require.NotContains(t, shown, seed)
	require.NotContains(t, shown, fmt.Sprintf("%x", seed))
	require.Contains(t, shown, "redacted")
}

func mint(t *testing.T, r identity.Request) (*identity.Mesh, string) {
	t.Helper()
	m, err := identity.Create(filepath.Join(t.TempDir(), "keys"), noon)
	require.NoError(t, err)
	c, err := m.Mint(r)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "credentials")
	require.NoError(t, identity.WriteCredentials(path, c))
	return m, path
}
