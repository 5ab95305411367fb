package identity_test

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"stead/mesh/identity"
)

// raw speaks the protocol byte by byte, as no library would.
type raw struct {
	t  testing.TB
	c  net.Conn
	in *bufio.Reader
}

// rawDial connects and proves who it is.
func (w *world) rawDial(c identity.Credentials) *raw {
	w.t.Helper()
	plain, err := net.DialTimeout("tcp", strings.TrimPrefix(w.url, "tls://"), longest)
	require.NoError(w.t, err)
	line, err := bufio.NewReader(plain).ReadString('\n')
	require.NoError(w.t, err)
	var info struct {
		Nonce string `json:"nonce"`
	}
	require.NoError(w.t, json.Unmarshal([]byte(strings.TrimPrefix(line, "INFO ")), &info))
	config, err := c.TLS()
	require.NoError(w.t, err)
	config.ServerName = "127.0.0.1"
	r := &raw{t: w.t, c: tls.Client(plain, config)}
	r.in = bufio.NewReader(r.c)
	pair, err := nkeys.FromSeed([]byte(c.Seed))
	require.NoError(w.t, err)
	sig, err := pair.Sign([]byte(info.Nonce))
	require.NoError(w.t, err)
	connect, err := json.Marshal(map[string]any{
		"jwt": c.JWT, "sig": base64.RawURLEncoding.EncodeToString(sig), "headers": true, "no_responders": true, "lang": "raw", "version": "1",
	})
	require.NoError(w.t, err)
	r.send("CONNECT " + string(connect) + "\r\n")
	return r
}

// send writes bytes and returns all that the server says until it has taken
// them.
func (r *raw) send(text string) string {
	r.t.Helper()
	require.NoError(r.t, r.c.SetDeadline(time.Now().Add(longest)))
	_, err := r.c.Write([]byte(text + "PING\r\n"))
	require.NoError(r.t, err)
	said := ""
	for {
		line, err := r.in.ReadString('\n')
		if err != nil || line == "PONG\r\n" {
			return said
		}
		said += line
	}
}

// publish sends a message with these bytes as its headers.
func (r *raw) publish(subject, reply, header string) string {
	r.t.Helper()
	return r.send(fmt.Sprintf("HPUB %s %s %d %d\r\n%s\r\n", subject, reply, len(header), len(header), header))
}

func (r *raw) close() { _ = r.c.Close() }
