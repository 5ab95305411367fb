package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/seats"
)

func anyVerb() (seats.Seat, seats.Verb) {
	v := seats.Verb{Name: "brew", Arguments: json.RawMessage(`{"properties":{
		"unit":{"type":"string","description":"what is meant"},"lines":{"type":"integer"},"share":{"type":["number","null"]},"now":{"type":"boolean"},
		"states":{"type":"array","items":{"type":"string"}},"ports":{"type":"array","items":{"type":"integer"}},"free":{},"more":{"type":"object"},"list":{"type":"array"}
	},"required":["unit"]}`)}
	return seats.Seat{Name: "pot", Verbs: []seats.Verb{v}}, v
}

func TestArgumentsAreTypedByTheSchema(t *testing.T) {
	seat, verb := anyVerb()
	for line, want := range map[string]string{
		"unit=5 lines=5 share=0.5 now=true":                    `{"unit":"5","lines":5,"share":0.5,"now":true}`,
		"unit=a=b states=x,y states=z":                         `{"unit":"a=b","states":["x","y","z"]}`,
		"unit=<&> ports=1,2 share=null":                        `{"unit":"<&>","ports":[1,2],"share":null}`,
		`unit=u more:={"a":1} free=7 lines:=3 share=-3 list=a`: `{"unit":"u","more":{"a":1},"free":"7","lines":3,"share":-3,"list":["a"]}`,
		"unit=u lines=+7 now=false":                            `{"unit":"u","lines":7,"now":false}`,
	} {
		got, err := argumentsOf(seat, verb, strings.Fields(line))
		require.NoError(t, err, line)
		text, err := encoded(got)
		require.NoError(t, err)
		require.JSONEq(t, want, string(text), line)
	}
}

func TestArgumentsThatAVerbCannotTake(t *testing.T) {
	seat, verb := anyVerb()
	for line, want := range map[string][2]string{
		"unit=u lines=many":      {`argument "lines" of brew: "many" is no integer`, ""},
		"unit=u lines=1.5":       {`argument "lines" of brew: "1.5" is no integer`, ""},
		"unit=u now=yes":         {`argument "now" of brew: "yes" is no boolean`, ""},
		"unit=u share=half":      {`argument "share" of brew: "half" is no number or null`, ""},
		"unit=u ports=1,x":       {`argument "ports" of brew: "x" is no integer`, ""},
		"unit=u more=x":          {`argument "more" of brew: it is an object, which is written more:={…}`, ""},
		"unit=u lines:={":        {`argument "lines" of brew: { is no JSON`, ""},
		"unit=u unit=v":          {`argument "unit" of brew: it is given twice, and is no list`, ""},
		"unit=u stats=x":         {`no argument of brew is called "stats"`, "did you mean states?"},
		"lines=5":                {"unit of brew is missing: what is meant", "stead call pot.brew unit=VALUE"},
		"unit=u states=a more":   {`"more" is neither KEY=VALUE nor KEY:=JSON`, ""},
		"unit=u lines=1 lines=2": {`argument "lines" of brew: it is given twice, and is no list`, ""},
	} {
		_, err := argumentsOf(seat, verb, strings.Fields(line))
		require.EqualError(t, err, want[0], line)
		require.Equal(t, want[1], fault.HintOf(err), line)
	}
	verb.Arguments = json.RawMessage("{")
	_, err := argumentsOf(seat, verb, nil)
	require.True(t, fault.Is(err, fault.Unsupported))
}

func TestACallNamesSeatVerbAndNodes(t *testing.T) {
	for text, want := range map[string]address{
		"pot.brew": {nodes: []string{"x"}}, "pot.brew@web1,web2": {nodes: []string{"web1", "web2"}}, "pot.brew@all": {all: true},
	} {
		w, err := parseCall(text)
		require.NoError(t, err)
		require.Equal(t, []string{"pot", "brew"}, []string{w.seat, w.verb})
		a := address{}
		if w.node == "" {
			a = want
		}
		got, err := w.to(a)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "pot", ".brew", "pot.", "pot.brew@", "pot@web1"} {
		_, err := parseCall(text)
		require.Error(t, err, text)
	}
	_, err := callee{"pot", "brew", "web1"}.to(address{all: true})
	require.Error(t, err)
}

func TestAStreamIsAskedForBehindItsCursor(t *testing.T) {
	of := behind(map[string]json.RawMessage{"unit": json.RawMessage(`"web"`), "lines": json.RawMessage("5"), "follow": json.RawMessage("true")})
	text, err := encoded(of(""))
	require.NoError(t, err)
	require.JSONEq(t, `{"unit":"web","lines":5,"follow":true}`, string(text))
	text, err = encoded(of("c1"))
	require.NoError(t, err)
	require.JSONEq(t, `{"unit":"web","cursor":"c1","follow":true}`, string(text))
}

func TestABootMayStandBehindItsFlag(t *testing.T) {
	for line, want := range map[string]string{
		"journal -b -1 -u web": "journal --boot=-1 -u web", "journal -b -u web": "journal -b -u web", "journal --boot all": "journal --boot=all",
		"journal -b": "journal -b", "call x -- -b 1": "call x -- -b 1",
	} {
		require.Equal(t, want, strings.Join(joinBoot(strings.Fields(line)), " "))
	}
}

func TestFiguresAreWrittenAsPeopleDo(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 4300000: "4.1 MiB", 1 << 62: "4194304.0 TiB"} {
		require.Equal(t, want, memory(&n))
	}
	for n, want := range map[uint64]string{0: "0 ms", 12_300_000_000: "12.3 s", 3_600_000_000_000: "1h0m0s", 1<<64 - 1: "1281023h53m38s"} {
		require.Equal(t, want, cpu(&n))
	}
}
