package journal

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/seats"
	"stead/test/lab"
)

func TestSmoke(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	p, err := Reader{}.Read(t.Context(), seats.JournalArguments{})
	require.NoError(t, err)
	require.NotEmpty(t, p.Entries)
	var got seats.JournalReply
	require.NoError(t, json.Unmarshal(p.JSON(), &got))
	require.Equal(t, p, got)
}
