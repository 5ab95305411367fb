package cli

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"stead/controller"
	"stead/host/fault"
	"stead/mesh/identity"
	"stead/mesh/subject"
)

// issue is what every kind of credentials needs.
type issue struct {
	state string
	urls  []string
	out   string
}

func newCredentials() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "credentials",
		Short: "make what a node or a person needs to take part in the mesh",
		Long: "credentials makes keys for a node, an operator or a viewer, signs them with the\n" +
			"keys of the mesh, and writes them to files that only their owner may read. It\n" +
			"runs on a controller's machine, as root. Whoever has such a file is that node\n" +
			"or person to the mesh: bring it there on a safe way, and delete the copy.",
	})
	var i issue
	c.PersistentFlags().StringVar(&i.state, "state", controller.DefaultDir, "take the keys of the mesh from `DIR`")
	c.PersistentFlags().StringSliceVar(&i.urls, "url", nil, "reach the mesh at `tls://HOST:PORT` (default: where its controller was last reached)")
	c.PersistentFlags().StringVar(&i.out, "out", "", "write to `PATH` (default: a name after NAME, here)")
	c.AddCommand(newNodeCredentials(&i), newOperatorCredentials(&i), newViewerCredentials(&i))
	return c
}

func newNodeCredentials(i *issue) *cobra.Command {
	return &cobra.Command{
		Use:   "node NAME",
		Short: "make the credentials of a node, one file for each of its parts",
		Long: "node makes the credentials of a node: a folder with one file for each process\n" +
			"and direction. It belongs on the node as /etc/stead/credentials.",
		Example: "  stead credentials node web1\n  scp -r web1 root@web1:/etc/stead/credentials",
		Args:    one("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := label(args[0], "such as: stead credentials node web1"); err != nil {
				return err
			}
			dir := i.out
			if dir == "" {
				dir = args[0]
			}
			mesh, urls, err := i.open()
			if err != nil {
				return err
			}
			if err := mintNode(mesh, elsewhere(urls), args[0], dir); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "credentials of node %s are in %s\n"+
				"next: bring the folder to the node as %s, then systemctl enable --now stead-host stead-runtime there\n", args[0], dir, nodeCredentials)
			return err
		},
	}
}

func newOperatorCredentials(i *issue) *cobra.Command {
	return i.person(identity.Operator, &cobra.Command{
		Use:   "operator NAME",
		Short: "make the credentials of a person who may do everything",
		Long: "operator makes the credentials of a person who may do everything: one file,\n" +
			"which that person takes over with stead context add.",
		Example: "  stead credentials operator alice\n  stead context add alice.json",
	})
}

func newViewerCredentials(i *issue) *cobra.Command {
	return i.person(identity.Viewer, &cobra.Command{
		Use:   "viewer NAME",
		Short: "make the credentials of a person who may read everything but content",
		Long: "viewer makes the credentials of a person who may read everything but content: one file,\n" +
			"which that person takes over with stead context add.",
		Example: "  stead credentials viewer alice\n  stead context add alice.json",
	})
}

// person makes c write the credentials of a person.
func (i *issue) person(role identity.Role, c *cobra.Command) *cobra.Command {
	c.Args = one("NAME")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := label(args[0], "such as: stead credentials "+string(role)+" alice"); err != nil {
			return err
		}
		path := i.out
		if path == "" {
			path = args[0] + ".json"
		}
		mesh, urls, err := i.open()
		if err != nil {
			return err
		}
		if err := mint(mesh, identity.Request{Role: role, Name: args[0], URLs: urls}, path); err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "credentials of %s %s are in %s\nnext: stead context add %s\n", role, args[0], path, path)
		return err
	}
	return c
}

// label refuses what cannot be the name of a node or a person in the mesh.
func label(name, hint string) error {
	if err := subject.CheckLabel("name", name); err != nil {
		return usageError{err, hint}
	}
	return nil
}

// open opens the keys of the mesh, and finds where it is reached.
func (i issue) open() (*identity.Mesh, []string, error) {
	mesh, err := identity.Open(controller.KeysDir(i.state))
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, nil, fault.New(fault.NotFound, "open mesh", i.state, errors.New("there are no keys of a mesh")).
			WithHint("a controller makes them when it is started first: systemctl start stead-controller, or: stead up")
	case fault.Is(err, fault.Denied):
		return nil, nil, fault.New(fault.Denied, "open mesh", i.state, os.ErrPermission).WithHint("only root may read the keys of the mesh: use sudo")
	case err != nil:
		return nil, nil, err
	}
	urls := i.urls
	if len(urls) == 0 {
		if urls, err = controller.Servers(i.state); err != nil {
			return nil, nil, err
		}
	}
	return mesh, urls, nil
}

// elsewhere leaves out addresses that are another machine's own there, unless
// there are no others.
func elsewhere(urls []string) []string {
	far := slices.DeleteFunc(slices.Clone(urls), func(s string) bool {
		u, err := url.Parse(s)
		return err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
	})
	if len(far) == 0 {
		return urls
	}
	return far
}

// mintNode makes a folder with the credentials of all parts of a node.
func mintNode(mesh *identity.Mesh, urls []string, name, dir string) error {
	for _, role := range identity.NodeRoles() {
		if err := unused(filepath.Join(dir, string(role)+".json")); err != nil {
			return err
		}
	}
	all := make([]identity.Credentials, 0, len(identity.NodeRoles()))
	for _, role := range identity.NodeRoles() {
		made, err := mesh.Mint(identity.Request{Role: role, Name: name, URLs: urls})
		if err != nil {
			return err
		}
		all = append(all, made)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.New(fault.Failed, "make folder", dir, err)
	}
	for _, made := range all {
		if err := identity.WriteCredentials(filepath.Join(dir, string(made.Role)+".json"), made); err != nil {
			return err
		}
	}
	return nil
}

// mint makes one file of credentials.
func mint(mesh *identity.Mesh, r identity.Request, path string) error {
	if err := unused(path); err != nil {
		return err
	}
	made, err := mesh.Mint(r)
	if err != nil {
		return err
	}
	return identity.WriteCredentials(path, made)
}

// unused refuses a path where something is: a key that is overwritten is lost.
func unused(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return fault.New(fault.Conflict, "write credentials", path, errors.New("there is a file already, and nothing was made")).
			WithHint("move it away, or name another place with --out")
	}
	return nil
}
