package shape

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Bounds of timeout.
const (
	MinTimeout = time.Second
	MaxTimeout = 24 * time.Hour
)

// parseDuration reads whole numbers with units, such as "90s", "1h30m" or
// "1h 30min". Whatever exceeds MaxTimeout by far reads as something above it.
func parseDuration(s string) (time.Duration, error) {
	if s == "" || len(s) > 64 {
		return 0, errors.New("is no duration")
	}
	var sum time.Duration
	for rest := s; rest != ""; {
		digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
		rest = rest[len(digits):]
		word := rest[:len(rest)-len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz"))]
		rest = rest[len(word):]
		one, ok := timeUnit(word)
		switch {
		case digits == "":
			return 0, errors.New("is no duration")
		case word == "" && rest == "" && digits == s:
			return 0, fmt.Errorf("has no unit")
		case !ok:
			return 0, fmt.Errorf("has no unit of time after %q", digits)
		}
		sum += scaled(digits, one)
		if strings.HasPrefix(rest, " ") && len(rest) > 1 {
			rest = rest[1:]
		}
	}
	return sum, nil
}

// scaled returns the number times one, or one nanosecond more than MaxTimeout
// when it is more than that.
func scaled(digits string, one time.Duration) time.Duration {
	var n time.Duration
	for _, c := range digits {
		n = n*10 + time.Duration(c-'0')
		if n > MaxTimeout/one {
			return MaxTimeout + 1
		}
	}
	return n * one
}

func timeUnit(word string) (time.Duration, bool) {
	switch word {
	case "ms":
		return time.Millisecond, true
	case "s":
		return time.Second, true
	case "m", "min":
		return time.Minute, true
	case "h":
		return time.Hour, true
	case "d":
		return 24 * time.Hour, true
	}
	return 0, false
}
