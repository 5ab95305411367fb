package host

import (
	"fmt"

	"stead/mesh/notify"
)

// declaring tells the service manager how many declarations are in force.
func declaring(n int) {
	text := fmt.Sprintf("%d declarations are in force", n)
	if n == 1 {
		text = "1 declaration is in force"
	}
	notify.Status(text)
}
