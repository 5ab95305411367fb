package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// waitTime is the value of a flag that bounds a wait.
type waitTime time.Duration

// Set takes what time.ParseDuration takes, if it is not negative.
func (w *waitTime) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return errors.New("a time has a unit, such as 30s or 2m, and is not negative")
	}
	*w = waitTime(d)
	return nil
}

func (w *waitTime) String() string {
	if *w == 0 {
		return ""
	}
	return time.Duration(*w).String()
}

// Type implements pflag.Value.
func (w *waitTime) Type() string { return "time" }

// length is the value of a flag that says for how long.
type length time.Duration

// Set takes what time.ParseDuration takes, behind a number of days.
func (l *length) Set(s string) error {
	days, rest, has := strings.Cut(s, "d")
	if !has {
		days, rest = "0", s
	}
	n, err := strconv.ParseUint(days, 10, 16)
	var d time.Duration
	if err == nil && rest != "" {
		d, err = time.ParseDuration(rest)
	}
	if err != nil || d < 0 || n == 0 && d == 0 {
		return errors.New("a length has a unit, such as 30m, 2h or 3d, and is more than nothing")
	}
	*l = length(time.Duration(n)*24*time.Hour + d)
	return nil
}

func (l *length) String() string {
	const day = 24 * time.Hour
	switch d := time.Duration(*l); {
	case d == 0:
		return ""
	case d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	default:
		return d.String()
	}
}

// Type implements pflag.Value.
func (l *length) Type() string { return "time" }

// joinWait makes one argument of --wait and a time behind it: the time may be
// left out, and then what follows is another argument.
func joinWait(args []string) []string {
	var joined []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(joined, args[i:]...)
		}
		if args[i] == "--wait" && i+1 < len(args) {
			if _, err := time.ParseDuration(args[i+1]); err == nil {
				joined = append(joined, "--wait="+args[i+1])
				i++
				continue
			}
		}
		joined = append(joined, args[i])
	}
	return joined
}

// joinBoot makes one argument of -b and a boot behind it, which may be left out,
// and may begin with a minus.
func joinBoot(args []string) []string {
	var joined []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(joined, args[i:]...)
		}
		if flag := args[i]; (flag == "-b" || flag == "--boot") && i+1 < len(args) && bootValue().MatchString(args[i+1]) {
			joined = append(joined, "--boot="+args[i+1])
			i++
			continue
		}
		joined = append(joined, args[i])
	}
	return joined
}

// logLevel is the value of a flag that says from which level on is logged.
type logLevel slog.Level

func levels() []string { return []string{"debug", "info", "warn", "error"} }

// Set takes the four levels, in small letters or large ones.
func (l *logLevel) Set(s string) error {
	if !slices.Contains(levels(), strings.ToLower(s)) {
		return fmt.Errorf("the levels are %s", strings.Join(levels(), ", "))
	}
	return (*slog.Level)(l).UnmarshalText([]byte(s))
}

func (l *logLevel) String() string { return strings.ToLower(slog.Level(*l).String()) }

// Type implements pflag.Value.
func (l *logLevel) Type() string { return "level" }

// format is the value of a flag that says in which form the answer is wanted; ""
// is that for people.
type format string

// Set takes one of the formats.
func (f *format) Set(s string) error {
	if !slices.Contains(formats(), s) {
		return errors.New("the formats are json, yaml and wide")
	}
	*f = format(s)
	return nil
}

func (f *format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *format) Type() string { return "format" }

// coded reports whether the answer is for programs.
func (f format) coded() bool { return f == "json" || f == "yaml" }

// formatFlag gives c the flag for it.
func formatFlag(c *cobra.Command, f *format) {
	c.Flags().VarP(f, "output", "o", "answer in `FORMAT`: json, yaml or wide")
	complete(c, "output", cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp))
}

// labels is the value of a flag that selects by labels.
type labels map[string]string

// Set takes key=value, several of them with commas between, and adds them.
func (l labels) Set(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		key, value, ok := strings.Cut(part, "=")
		if !ok || key == "" {
			return errors.New("a label is written key=value, such as role=web")
		}
		l[key] = value
	}
	return nil
}

func (l labels) String() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(l)) {
		parts = append(parts, key+"="+l[key])
	}
	return strings.Join(parts, ",")
}

// Type implements pflag.Value.
func (l labels) Type() string { return "label" }
