package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
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
