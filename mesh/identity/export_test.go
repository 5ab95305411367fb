package identity

import "github.com/nats-io/jwt/v2"

// SignUnchecked signs a user with the role's key and whatever change makes of
// the claims: what a careless or stolen signer could do.
func (m *Mesh) SignUnchecked(r Role, account Account, public string, change func(*jwt.UserClaims)) (string, error) {
	key, err := m.roleKey(r)
	if err != nil {
		return "", err
	}
	c := jwt.NewUserClaims(public)
	c.IssuerAccount = m.keys.Accounts[account]
	c.SetScoped(true)
	change(c)
	return c.Encode(key)
}
