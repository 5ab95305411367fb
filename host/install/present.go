package install

import "path"

// Present reports whether the symbolic link at l.Path with the verbatim target
// counts as l, so that the manager leaves it as it is.
func Present(l Link, target string) bool {
	if !path.IsAbs(target) {
		target = path.Join(path.Dir(l.Path), target)
	}
	return path.Clean(target) == path.Clean(l.Target)
}
