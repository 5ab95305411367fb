package reconcile

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

const secret = "hunter2"

// quoting is an adviser whose lines and warnings quote unit files.
type quoting struct{}

func (quoting) Lines(_ context.Context, names []unit.Name) map[unit.Name][]string {
	return map[unit.Name][]string{names[0]: {"web.service:3: Failed to parse " + secret, "web.service: " + secret + ". Refusing."}}
}

func (quoting) Verify(context.Context, map[unit.Name]string) map[unit.Name][]string {
	return map[unit.Name][]string{"web.service": {"web.service:3: Unknown key name '" + secret + "'"}}
}

type noise struct {
	mu   sync.Mutex
	text strings.Builder
}

func (n *noise) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

// TestNothingIsToldThatQuotesASensitiveDeclaration: not in reports, dry runs and the
// log, whatever systemd says of it.
func TestNothingIsToldThatQuotesASensitiveDeclaration(t *testing.T) {
	for name, sensitive := range map[string]bool{"sensitive": true, "not": false} {
		t.Run(name, func(t *testing.T) {
			var log noise
			inRig(t, func(r *rig) {
				r.stop()
				o := r.options
				o.Adviser, o.Logger = quoting{}, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
				ctx, cancel := context.WithCancel(r.t.Context())
				ended := make(chan error, 1)
				r.loop = New(o)
				go func() { ended <- r.loop.Run(ctx) }()
				r.stop = func() { cancel(); <-ended }
				declare := func(n string) *shape.Service {
					return service("web", "/bin/false", func(s *shape.Service) {
						content := "[Service]\nEnvironment=PASSWORD=" + secret + n + "\nExecStart=/bin/false\n[Install]\nAlias=" + secret + ".timer\n"
						s.Content, s.Sensitive = &content, sensitive
					})
				}
				r.declare(declare("1"))
				r.after(time.Minute)
				told, err := json.Marshal(r.loop.Reports())
				require.NoError(r.t, err)
				plans, err := json.Marshal(r.plan([]*shape.Service{declare("2")}))
				require.NoError(r.t, err)
				for what, text := range map[string]string{"reports": string(told), "plans": string(plans), "log": log.text.String()} {
					if sensitive {
						require.NotContains(r.t, text, secret, what)
					}
				}
				if !sensitive {
					require.Contains(r.t, string(told), secret)
					require.Contains(r.t, string(plans), secret)
					return
				}
				rep := r.report("web.service")
				require.Equal(r.t, report.Failed, rep.Outcome)
				require.Equal(r.t, []string{"2 log lines not shown: the declaration is sensitive"}, rep.Lines)
				require.Contains(r.t, rep.Warnings, "1 verifier warning not shown: the declaration is sensitive")
				require.Contains(r.t, strings.Join(rep.Warnings, "\n"), "[Install]: not shown")
			})
		})
	}
}

// TestWhatKeepsASensitiveUnitFromItsStartIsNotQuoted: a condition or an assert is a
// line of its file.
func TestWhatKeepsASensitiveUnitFromItsStartIsNotQuoted(t *testing.T) {
	for word, outcome := range map[string]report.Outcome{"Condition": report.Waiting, "Assert": report.Failed} {
		inRig(t, func(r *rig) {
			web := service("web", "/bin/sleep infinity", func(s *shape.Service) {
				content := "[Unit]\n" + word + "PathExists=/" + secret + "\n[Service]\nExecStart=/bin/sleep infinity\n"
				s.Content, s.Enabled, s.Sensitive = &content, nil, true
			})
			r.declare(web)
			rep := r.after(3 * time.Second).report("web.service")
			require.Equal(r.t, outcome, rep.Outcome, "%s: %s", word, rep.Text)
			require.NotContains(r.t, rep.Text, secret)
			require.Contains(r.t, rep.Text, "of it is unmet, which is not shown: the declaration is sensitive")
		})
	}
}
