package shape

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func all(t *testing.T, docs ...string) []*Declaration {
	t.Helper()
	var batch []*Declaration
	for i, d := range docs {
		services, problems := Parse(fmt.Sprintf("%c.yaml", 'a'+i), []byte("shape: service\nensure: running\n"+d))
		require.Empty(t, problems)
		batch = append(batch, services...)
	}
	return batch
}

func TestCheckFindsWhatTwoDeclarationsBothClaim(t *testing.T) {
	const cure = "a unit has one declaration: write both as one"
	alias := func(name, of string) string {
		return "name: " + name + "\ncontent: |\n  [Install]\n  Alias=" + of + "\n"
	}
	for name, c := range map[string]struct {
		docs []string
		want Problems
	}{
		"nothing":           {[]string{"name: a\n", "name: b\n"}, nil},
		"template and one":  {[]string{"name: a\nunit: x@1\n", "name: b\nunit: x@2\n"}, nil},
		"one of each scope": {[]string{"name: a\nunit: web\n", "name: b\nunit: web\nscope: user\n"}, nil},
		"doubled in user scope": {[]string{"name: a\nunit: web\nscope: user\n", "name: b\nunit: web\nscope: user\n"}, Problems{
			{"b.yaml", 1, "b.unit", `web.service is declared by "a" at a.yaml:1 too`, cure}}},
		"an alias in the other scope": {[]string{"name: a\n", alias("b", "a.service") + "scope: user\n"}, nil},
		"doubled name": {[]string{"name: a\n", "name: a\n", "name: a\nunit: c\n"}, Problems{
			{"b.yaml", 1, "a.name", `the name "a" is declared at a.yaml:1 too`, "give one of them another name, or delete it"},
			{"c.yaml", 1, "a.name", `the name "a" is declared at a.yaml:1 too`, "give one of them another name, or delete it"}}},
		"doubled unit": {[]string{"name: a\nunit: web\n", "name: b\nunit: web.service\n"}, Problems{
			{"b.yaml", 1, "b.unit", `web.service is declared by "a" at a.yaml:1 too`, cure}}},
		"an alias is another's unit": {[]string{"name: a\n", alias("b", "a.service")}, Problems{
			{"b.yaml", 1, "b.content", `Alias=a.service is a unit that "a" declares at a.yaml:1`, "a unit has one declaration: give the alias another name, or write both as one"}}},
		"a unit is another's alias": {[]string{alias("b", "a.service"), "name: a\n"}, Problems{
			{"b.yaml", 1, "a.unit", `a.service is declared by "b" at a.yaml:1 too, as an alias of b.service`, cure}}},
		"two have one alias": {[]string{alias("a", "x.service"), alias("b", "x.service")}, Problems{
			{"b.yaml", 1, "b.content", `Alias=x.service is a unit that "a" declares at a.yaml:1, as an alias of a.service`, "a unit has one declaration: give the alias another name, or write both as one"}}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Check(all(t, c.docs...), 0)) })
	}
}

func TestCheckNamesLeavesUnitsToWhoKnowsTheNodes(t *testing.T) {
	batch := all(t, "name: a\n", "name: b\nunit: a\n", "name: a\nunit: c\n")
	require.Equal(t, Problems{{"c.yaml", 1, "a.name", `the name "a" is declared at a.yaml:1 too`, "give one of them another name, or delete it"}}, CheckNames(batch, 0))
	require.Len(t, Check(batch, 0), 2)
}

func TestCheckBoundsABatch(t *testing.T) {
	var docs []string
	for i := range MaxDeclarations + 1 {
		docs = append(docs, fmt.Sprintf("name: n%d\n", i))
	}
	batch := all(t, docs...)
	require.Empty(t, Check(batch[:MaxDeclarations], MaxBatch))
	require.Equal(t, Problems{
		{batch[1000].Origin.File, 1, "n1000", "there are 1001 declarations; a batch has at most 1000", "declare fewer"},
		{"", 0, "", "the documents have 16777217 bytes; a batch has at most 16777216", "declare less"},
	}, Check(batch, MaxBatch+1))
}
