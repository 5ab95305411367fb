package identity_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/identity"
	"stead/mesh/subject"
)

// TestNobodyAsksWhereSomebodyIsAsked is the rule behind the accounts: where an
// account has a subscription that others may call, no user of it may publish
// anything but answers. Controllers are trusted with everything of theirs.
func TestNobodyAsksWhereSomebodyIsAsked(t *testing.T) {
	table := identity.Permissions()
	for _, asked := range table.Roles {
		serves := slices.ContainsFunc(asked.Subscribe, func(s string) bool { return !strings.HasPrefix(s, "_INBOX.") })
		if !serves || asked.Account == identity.CTL {
			continue
		}
		for _, other := range table.Roles {
			require.False(t, other.Account == asked.Account && len(other.Publish) > 0,
				"%s serves in the account %s, where %s may publish", asked.Role, asked.Account, other.Role)
		}
	}
}

// TestServicesHaveAWildcard: through an import without one the server hands an
// answer on to whoever serves it.
func TestServicesHaveAWildcard(t *testing.T) {
	for _, s := range identity.Permissions().Services {
		require.Contains(t, s.Subject, "*", "it passes to %v without a wildcard", s.To)
	}
}

// TestAnActMayTakeTenMinutes: the server forgets the way back of an answer that
// does not come in time, two minutes when nothing is said.
func TestAnActMayTakeTenMinutes(t *testing.T) {
	for _, s := range identity.Permissions().Services {
		if s.Subject == subject.VerbPattern(subject.Write, subject.Any, subject.Any) {
			require.Greater(t, s.Within, 10*time.Minute+5*time.Second)
			require.Less(t, s.Within, time.Hour, "the way back is kept for as long behind the answer too")
			return
		}
	}
	t.Fatal("nobody acts")
}

func TestOnlyControllersHaveJetStream(t *testing.T) {
	for _, a := range identity.Permissions().Accounts {
		require.Equal(t, a.Account == identity.CTL, a.JetStream, a.Account)
	}
}

func TestNobodyIsInTheAccountOfServersOrOfWhoJoins(t *testing.T) {
	for _, r := range identity.Permissions().Roles {
		require.NotContains(t, []identity.Account{identity.SYS, identity.ENROLL}, r.Account, r.Role)
	}
	for _, a := range identity.Permissions().Accounts {
		require.Equal(t, a.Account == identity.SYS || a.Account == identity.ENROLL, a.Connections == 0, a.Account)
	}
}

// TestTableIsACopy: who changes what Permissions returned changes nothing.
func TestTableIsACopy(t *testing.T) {
	first := identity.Permissions()
	first.Roles[1].Publish[0], first.Services[0].To[0], first.Accounts[0].JetStream = ">", identity.VIEW, false
	again := identity.Permissions()
	require.NotEqual(t, first, again)
	require.NotEqual(t, ">", again.Roles[1].Publish[0])
}

func TestTablesThatDoNotFitAreNotSigned(t *testing.T) {
	m := newRealm(t).mesh
	for name, change := range map[string]func(*identity.Table){
		"an account without a key": func(x *identity.Table) { x.Accounts = append(x.Accounts, identity.AccountRow{Account: "X"}) },
		"a role without a key": func(x *identity.Table) {
			x.Roles = append(x.Roles, identity.RoleRow{Role: "x", Account: identity.VIEW})
		},
		"a service of nobody": func(x *identity.Table) {
			x.Services = append(x.Services, identity.ServiceRow{Subject: "a.*", From: "X", To: []identity.Account{identity.VIEW}})
		},
		"a subject that is none": func(x *identity.Table) { x.Roles[1].Publish[0] = "a b" },
		"a service twice":        func(x *identity.Table) { x.Services = append(x.Services, x.Services[0]) },
	} {
		table := identity.Permissions()
		change(&table)
		_, err := m.Trust(table, nil)
		require.True(t, fault.Is(err, fault.Internal), "%s: %v", name, err)
	}
}
