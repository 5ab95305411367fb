package bench

import (
	"flag"
	"fmt"
	"os"
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

// BenchmarkHost fills one table, row after row, and prints it.
func BenchmarkHost(b *testing.B) {
	t := &table{}
	b.Run("apply/units=100", func(b *testing.B) { benchApply(b, t, 100, 5) })
	b.Run("apply/units=1000", func(b *testing.B) { benchApply(b, t, 1000, 3) })
	b.Run("look/units=1000", func(b *testing.B) { benchLook(b, t, 1000, 15) })
	b.Run("restore/units=100", func(b *testing.B) { benchRestore(b, t, 100, 3) })
	b.Run("memory/declarations=100", func(b *testing.B) { benchMemory(b, t, 100) })
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
