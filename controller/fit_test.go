package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/shape"
	"stead/mesh/wire"
)

func TestAnswersFitIntoOneMessage(t *testing.T) {
	long := strings.Repeat("<é>", 200)
	var whole wire.ChangeReply
	for i := range 1200 {
		name := fmt.Sprintf("s%d", i)
		whole.Changes = append(whole.Changes, wire.Change{Name: name, Unit: long[:100], Fields: []string{"content"}})
		whole.Problems = append(whole.Problems, shape.Problem{File: name, Rule: long, Line: 1})
		whole.Conflicts = append(whole.Conflicts, wire.Conflict{Name: name, By: long})
		whole.Warnings = append(whole.Warnings, long)
		whole.Plans = append(whole.Plans, wire.NodePlan{Node: name, Plan: wire.Plan{Name: name, Text: long}})
	}
	for name, r := range map[string]wire.ChangeReply{
		"everything": whole,
		"problems":   {Problems: whole.Problems},
		"conflicts":  {Conflicts: whole.Conflicts},
		"plans":      {Plans: whole.Plans, Changes: whole.Changes[:1000]},
		"warnings":   {Warnings: whole.Warnings},
		"changes":    {Changes: append(whole.Changes, whole.Changes...)},
	} {
		got := fit(r)
		require.LessOrEqual(t, size(got), maxAnswer, name)
		require.Equal(t, held(r), held(got), "%s: what holds a request up still does", name)
		require.Equal(t, len(r.Plans), len(got.Plans)+got.More, name)
	}
	small := wire.ChangeReply{Revision: 3, Changes: whole.Changes[:2]}
	require.Equal(t, small, fit(small))
}

func TestTextsAreCutBetweenCharacters(t *testing.T) {
	require.Equal(t, "short", cut("short"))
	for n := range 4 {
		got := cut(strings.Repeat("x", n) + strings.Repeat("日", maxWords))
		require.LessOrEqual(t, len(got), maxWords)
		require.Equal(t, got, strings.ToValidUTF8(got, "?"))
	}
}

func TestSortedListsMeet(t *testing.T) {
	require.True(t, meet([]string{"a", "c", "e"}, []string{"b", "c"}))
	require.False(t, meet([]string{"a", "c", "e"}, []string{"b", "d", "f"}))
	require.False(t, meet(nil, []string{"a"}))
}
