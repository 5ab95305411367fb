package shape

// Nearest returns the word of words that word was probably meant to be, or ""
// when none is near: at most two letters wrong, or one in a word of up to four.
func Nearest(word string, words []string) string {
	if len(word) > 64 {
		return ""
	}
	best, least := "", 3
	if len(word) <= 4 {
		least = 2
	}
	for _, w := range words {
		if len(w)-len(word) >= least || len(word)-len(w) >= least {
			continue // so many letters are missing
		}
		if d := distance(word, w); d < least {
			best, least = w, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that make b of a, in bytes.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
