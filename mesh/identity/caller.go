package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"stead/host/fault"
)

// CallerHeader is the header in which the server says who sent a message that
// passed from one account to another.
const CallerHeader = "Nats-Request-Info"

// maxHeaders is how many headers a call may have. See genuine.
const maxHeaders = 16

// Caller is who sent a message, as the server states it.
type Caller struct {
	Account Account
	Role    Role
	Name    string // of the node, person or controller
	User    string // public key
}

// Caller says who sent m. It is denied when the server does not say it, when
// anything in the headers could have been put there to look like the server's
// word, when the message took a way around another account, or when the account
// or role is not of this mesh. M must be as it was received.
//
// A message that did not pass between accounts bears what its sender put in it.
// So who serves does it in an account where nobody may publish: that is what the
// table is for.
func (c Credentials) Caller(m *nats.Msg) (Caller, error) {
	text, err := genuine(m)
	if err != nil {
		return Caller{}, fault.New(fault.Denied, "caller", "", err)
	}
	var info struct {
		Account string `json:"acc"`
		Service string `json:"svc"`
		User    string `json:"user"`
		Name    string `json:"name_tag"`
		Issuer  string `json:"issuer_key"`
	}
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		return Caller{}, fault.New(fault.Denied, "caller", "", err)
	}
	account, known := c.Accounts[info.Account]
	role, signed := c.Roles[info.Issuer]
	switch {
	case info.Service != "":
		return Caller{}, fault.New(fault.Denied, "caller", fmt.Sprintf("%q", info.Name), errors.New("the message came by way of another account"))
	case !known, !signed, info.Name == "":
		return Caller{}, fault.New(fault.Denied, "caller", fmt.Sprintf("%q", info.Name), errors.New("not of this mesh"))
	}
	return Caller{Account: account, Role: role, Name: info.Name, User: info.User}, nil
}

// genuine returns the one text of CallerHeader, when it is certain that the
// server wrote it.
//
// The server writes over the header if it finds it on a line that CRLF begins,
// and appends it otherwise. nats.go reads lines that end in LF alone, and stops
// at the first empty one. So a sender can place a header that nats.go reads and
// the server does not see, before an empty line behind which the server's word
// is lost; or glue the server's word to the end of another header (all seen with
// NATS server 2.15.2, see the tests). Where is the server's word, then? It is
// one of:
//
//   - the one text of the header: what is wanted;
//   - a second text of the header: refused, there must be one;
//   - within another key or text: refused by its name;
//   - in bytes that nats.go passed over: refused, since the message must be as
//     long as its headers are when they are written the usual way. A sender may
//     save two bytes of each header by writing it shorter, so headers are few:
//     what can be saved is less than the server's word is long.
func genuine(m *nats.Msg) (string, error) {
	texts := m.Header[CallerHeader]
	if len(texts) == 0 {
		return "", errors.New("the server does not say who calls")
	}
	count, length := 0, len("NATS/1.0\r\n\r\n")
	for key, values := range m.Header {
		for _, v := range values {
			count++
			length += len(key) + len(": \r\n") + len(v)
			if key != CallerHeader && (strings.Contains(key, CallerHeader) || strings.Contains(v, CallerHeader)) {
				return "", fmt.Errorf("the header %q holds the name of the server's", key)
			}
		}
	}
	switch {
	case len(texts) != 1, count > maxHeaders:
		return "", fmt.Errorf("%d headers, %d of them like the server's", count, len(texts))
	case m.Size()-len(m.Subject)-len(m.Reply)-len(m.Data) != length:
		return "", errors.New("the headers hold bytes that are no header")
	}
	return texts[0], nil
}
