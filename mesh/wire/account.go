package wire

import (
	"strings"

	"stead/host/shape"
)

// Lingers are the values of a node's linger setting, the default first.
func Lingers() []string { return []string{"auto", "on", "off"} }

// Login reports whether s can name an operator account: 1 to 32 letters, digits, -, _
// and ., beginning with a letter or _.
func Login(s string) bool {
	return len(s) <= 32 && !strings.HasSuffix(s, "$") && shape.LoginName(s)
}

// Account is a node's operator account as its host finds it.
type Account struct {
	Name string `json:"name"`
	UID  uint32 `json:"uid,omitempty"` // 0: the machine knows no such login
	// Lingers: the account's manager runs without a login.
	Lingers bool `json:"lingers,omitempty"`
	// State is "ready" when units of scope user can be applied, and else the reason
	// that their reports name; Text says it for people.
	State string `json:"state"`
	Text  string `json:"text,omitempty"`
}

// AccountReady is the state of an account whose manager answers the host.
const AccountReady = "ready"
