package identity

import (
	"encoding/json"
	"errors"
	"fmt"

	"stead/host/fault"
)

// CallerHeader is the header in which the server says who sent a message that
// passed from one account to another. A client cannot forge it: the server
// writes over it. A message that did not pass between accounts may bear
// anything in it, so who serves listens only where nobody else in the account
// may publish (seen in the permission tests).
const CallerHeader = "Nats-Request-Info"

// Caller is who sent a message, as the server states it.
type Caller struct {
	Account Account
	Role    Role
	Name    string // of the node, person or controller
	User    string // public key
}

// Caller reads the text of CallerHeader. It is denied when it is missing or
// names an account or role that is not of this mesh.
func (c Credentials) Caller(header string) (Caller, error) {
	if header == "" {
		return Caller{}, fault.New(fault.Denied, "caller", "", errors.New("the server does not say who calls"))
	}
	var info struct {
		Account string `json:"acc"`
		User    string `json:"user"`
		Name    string `json:"name_tag"`
		Issuer  string `json:"issuer_key"`
	}
	if err := json.Unmarshal([]byte(header), &info); err != nil {
		return Caller{}, fault.New(fault.Denied, "caller", "", err)
	}
	account, known := c.Accounts[info.Account]
	role, signed := c.Roles[info.Issuer]
	if !known || !signed || info.Name == "" {
		return Caller{}, fault.New(fault.Denied, "caller", fmt.Sprintf("%q", info.Name), errors.New("not of this mesh"))
	}
	return Caller{Account: account, Role: role, Name: info.Name, User: info.User}, nil
}
