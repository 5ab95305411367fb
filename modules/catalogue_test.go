package modules

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stead/mesh/subject"
	"stead/seats"
)

func TestBuiltInModulesServeWhatTheyClaim(t *testing.T) {
	known := seats.Seeded()
	all := Catalogue()
	require.NotEmpty(t, all)
	held := map[subject.Seat]string{}
	for _, m := range all {
		require.NoError(t, m.Check())
		require.NotEmpty(t, m.Meaning)
		for _, name := range m.Claims {
			seat, err := seats.Find(known, string(name))
			require.NoError(t, err)
			require.NoError(t, seats.Judge(seat, m.Claim(name, "ws1"), held[name]))
			require.Equal(t, seat.Requires, m.Requires, "it is assigned where the seat can be held")
			held[name] = m.Name
		}
	}
	require.Equal(t, map[subject.Seat]string{seats.NodeServiceManager: Systemd}, held)
}

func TestToolsHaveTheSchemasOfTheirVerbs(t *testing.T) {
	seat := seats.Seeded()[0]
	m := Catalogue()[0]
	require.Len(t, m.Tools, len(seat.Verbs))
	for i, tool := range m.Tools {
		v := seat.Verbs[i]
		require.Equal(t, Tool{v.Name, v.Class, v.Meaning, v.Arguments, v.Reply, v.Follows}, tool)
	}
}

func TestClaimWithoutAVerbIsRefusedByName(t *testing.T) {
	m := Catalogue()[0]
	for i, tool := range m.Tools {
		if tool.Name == seats.Journal {
			m.Tools = append(m.Tools[:i], m.Tools[i+1:]...)
			break
		}
	}
	m.Name = "x"
	require.EqualError(t, seats.Judge(seats.Seeded()[0], m.Claim(seats.NodeServiceManager, "ws1"), ""),
		`claim of seat node-service-manager by module "x" on node "ws1" refused: verb "journal" is not served`)
}
