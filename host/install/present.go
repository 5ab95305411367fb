package install

import "path"

// Present reports whether the symbolic link at l.Path, which has that verbatim
// target, counts as l: it leads to the same file, or both targets have the same
// file name and lie below the search path, where systemd goes by the name
// alone. The manager leaves such a link as it is.
//
// The manager also takes any relative target of the same file name, even one
// that leads nowhere. Here a relative target must lead below the search path.
func (o Options) Present(l Link, target string) bool {
	if !path.IsAbs(target) {
		target = path.Join(path.Dir(l.Path), target)
	}
	if o.is247() {
		return o.present247(l, target)
	}
	target = path.Clean(target)
	switch {
	case target == l.Target:
		return true
	case target == l.Path:
		return false
	case path.Base(target) == path.Base(l.Target) && o.underneath(target) && o.underneath(l.Target):
		return true
	}
	return o.Same != nil && o.Same(target, l.Target)
}
