package identity

import (
	"fmt"
	"log/slog"
)

// Secret is a text that is not shown: printed or logged it reads "redacted". In
// JSON it stands as it is, for files of mode 0600.
type Secret string

// Format implements fmt.Formatter for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("redacted")) }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue("redacted") }
