package server

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"stead/host/fault"
	"stead/mesh/identity"
	"stead/mesh/subject"
)

// DefaultCredentials is the folder of a node's credentials.
const DefaultCredentials = "/etc/stead/credentials"

// pair is who a runtime is in the mesh: it asks as one user, and is called as
// another.
type pair struct{ runtime, tool identity.Credentials }

// readPair reads both files and checks that they belong together.
func readPair(dir string) (p pair, err error) {
	if p.runtime, err = readOne(dir, identity.Runtime); err != nil {
		return p, err
	}
	if p.tool, err = readOne(dir, identity.Tool); err != nil {
		return p, err
	}
	if err := together(p.runtime, p.tool); err != nil {
		return p, fault.New(fault.Invalid, "read credentials", dir, err).WithHint("put both files of one node there")
	}
	_, err = subject.ParseNode(p.runtime.Name)
	return p, err
}

func readOne(dir string, role identity.Role) (identity.Credentials, error) {
	path := filepath.Join(dir, string(role)+".json")
	c, err := identity.ReadCredentials(path)
	const cure = "make all files of the node where a controller runs, with: stead credentials node NAME"
	switch {
	case fault.Is(err, fault.NotFound):
		return c, fault.New(fault.NotFound, "read credentials", path, errors.New("there is no such file")).WithHint(cure)
	case err == nil && c.Role != role:
		return c, fault.New(fault.Invalid, "read credentials", path, fmt.Errorf("they are of role %q, and %q is wanted", c.Role, role)).WithHint(cure)
	}
	return c, err
}

// together returns an error unless a and b are of one node of one mesh.
func together(a, b identity.Credentials) error {
	if a.Mesh == b.Mesh && a.Name == b.Name && bytes.Equal(a.DeclarationKey, b.DeclarationKey) {
		return nil
	}
	return fmt.Errorf("%s.json is of node %q in mesh %s, and %s.json of node %q in mesh %s", a.Role, a.Name, a.Mesh, b.Role, b.Name, b.Mesh)
}

// again reads the credentials of one role for an attempt to connect. Those of
// another node or mesh are told to other: nothing that runs is of them.
func again(dir string, had identity.Credentials, other func(error)) func() (identity.Credentials, error) {
	return func() (identity.Credentials, error) {
		c, err := readOne(dir, had.Role)
		if err != nil {
			return c, err
		}
		if together(had, c) != nil {
			err = fault.New(fault.Conflict, "read credentials", dir, fmt.Errorf("they are of node %q in mesh %s now, and the runtime is node %q in mesh %s",
				c.Name, c.Mesh, had.Name, had.Mesh))
			other(err)
			return c, err
		}
		return c, nil
	}
}
