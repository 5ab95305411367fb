package bench

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if job := os.Getenv(jobEnv); job != "" {
		os.Exit(serve(job))
	}
	os.Exit(m.Run())
}

// BenchmarkStead fills one table, row after row, and prints it.
func BenchmarkStead(b *testing.B) {
	t := &table{}
	for _, m := range []struct {
		name    string
		measure func(b *testing.B, t *table) (float64, string)
	}{
		{"apply-100", func(b *testing.B, t *table) (float64, string) { return benchApply(b, t, 100, 9) }},
		{"apply-1000", func(b *testing.B, t *table) (float64, string) { return benchApply(b, t, 1000, 3) }},
		{"look-1000", func(b *testing.B, t *table) (float64, string) { return benchLook(b, t, 1000, 21) }},
		{"restore-100", func(b *testing.B, t *table) (float64, string) { return benchRestore(b, t, 100, 3) }},
		{"seat-10", func(b *testing.B, t *table) (float64, string) { return benchSeat(b, t, 151) }},
		{"memory-100", func(b *testing.B, t *table) (float64, string) { return benchMemory(b, t, 100) }},
	} {
		// The testing package calls a benchmark again until it has run for as long as
		// it was told; one call fills the row, and the others repeat what it found.
		var value float64
		var unit string
		b.Run(m.name, func(b *testing.B) {
			if unit == "" {
				value, unit = m.measure(b, t)
			}
			b.ReportMetric(0, "ns/op") // nothing to do with it
			b.ReportMetric(value, unit)
		})
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		t.note("load of this machine of %d cores at the end, over 1, 5 and 15 minutes: %s", runtime.NumCPU(), strings.Join(strings.Fields(string(load))[:3], ", "))
	}
	fmt.Print(t)
}

// turns is how often floor and host take turns: usual, or N with -benchtime Nx.
func turns(usual int) int {
	given := flag.Lookup("test.benchtime").Value.String()
	if n, err := strconv.Atoi(strings.TrimSuffix(given, "x")); err == nil && strings.HasSuffix(given, "x") {
		return n
	}
	return usual
}
