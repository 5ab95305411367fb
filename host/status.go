package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"stead/host/fault"
	"stead/host/report"
	"stead/mesh/wire"
)

// Status is what a host says of itself and of all that is declared to it.
type Status struct {
	Node    string           `json:"node"`
	Version string           `json:"version"`           // of stead
	Systemd string           `json:"systemd,omitempty"` // of the manager, "" while it does not answer
	Started time.Time        `json:"started"`
	Source  Source           `json:"source"`
	Account *wire.Account    `json:"account,omitempty"` // the node's operator account; nil for none
	Reports []*report.Report `json:"reports"`
}

// Source is where the declarations come from, and how it stands with that.
type Source struct {
	Folder string      `json:"folder,omitempty"` // of declarations; "" when they come from a mesh
	Mesh   *Membership `json:"mesh,omitempty"`   // nil when they come from a folder
	// Accepted is when a reading of the folder was last accepted, or what
	// controllers tell was last accepted or found to be the same; zero before the
	// first time.
	Accepted time.Time `json:"accepted,omitzero"`
	Read     time.Time `json:"read,omitzero"` // when the folder was last read, or a controller last answered
	// Trouble says why the last reading was not accepted, or why nothing can be
	// heard of the mesh; what was accepted before stays in force. "" when all is
	// well.
	Trouble  string   `json:"trouble,omitempty"`
	Problems []string `json:"problems,omitempty"`
	// Warnings hold nothing up: they name what lies in the folder and is passed
	// over, such as a link to a folder.
	Warnings []string `json:"warnings,omitempty"`
	// Taking says that something newer is being taken over: the reports are still
	// those of before.
	Taking bool `json:"taking,omitempty"`
	// Leaving are declarations that have just gone from the folder; they are
	// withdrawn when they stay gone for two seconds. Sorted.
	Leaving []string `json:"leaving,omitempty"`
	// Kept are declarations that are in force and that the source did not declare:
	// they are of another folder, mesh or epoch. Only an explicit withdrawal ends
	// them. Sorted.
	Kept []string `json:"kept,omitempty"`
}

// Membership is a host's part in a mesh.
type Membership struct {
	Credentials string    `json:"credentials"` // the folder
	Servers     []string  `json:"servers,omitempty"`
	Mesh        string    `json:"mesh,omitempty"`  // its name
	Epoch       string    `json:"epoch,omitempty"` // "" until something of it was accepted
	Revision    uint64    `json:"revision,omitempty"`
	Connected   bool      `json:"connected"`
	Since       time.Time `json:"since,omitzero"` // when the connection came or went
	Events      int       `json:"events"`         // that wait for a controller
}

// MaxStatus bounds the answer that a client reads, in bytes.
const MaxStatus = 64 << 20

const statusPath = "/v1/status"

// serveStatus answers on listener until ctx ends.
func serveStatus(ctx context.Context, listener net.Listener, status func() Status) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+statusPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		// A reader that goes away is its own affair.
		_ = json.NewEncoder(w).Encode(status())
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(bound) != nil {
			_ = server.Close()
		}
	}()
	err := server.Serve(listener)
	<-stopped
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fault.New(fault.Failed, "serve status", listener.Addr().String(), err)
}

// listen opens a unix socket that only root may open. A socket that a killed
// host left behind is replaced; one that another host serves is not.
func listen(ctx context.Context, path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fault.New(fault.Failed, "make folder", filepath.Dir(path), err)
	}
	if c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path); err == nil {
		_ = c.Close()
		return nil, fault.New(fault.Conflict, "listen", path, errors.New("another host answers there")).
			WithHint("systemctl status stead-host")
	}
	if st, err := os.Lstat(path); err == nil && st.Mode()&os.ModeSocket == 0 {
		return nil, fault.New(fault.Conflict, "listen", path, errors.New("something stands there that is no socket"))
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fault.New(fault.Failed, "remove", path, err)
	}
	old := syscall.Umask(0o177)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	syscall.Umask(old)
	if err != nil {
		return nil, fault.New(fault.Failed, "listen", path, err)
	}
	return listener, nil
}

// ReadStatus asks the host behind the socket at path.
func ReadStatus(ctx context.Context, path string) (Status, error) {
	var st Status
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://host"+statusPath, nil)
	if err != nil {
		return st, fault.New(fault.Internal, "ask the host", path, err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return st, unreachable(path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return st, fault.New(fault.Unsupported, "ask the host", path, fmt.Errorf("it answers %s", resp.Status)).
			WithHint("the host that runs and this command are of different versions: restart stead-host")
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, MaxStatus)).Decode(&st); err != nil {
		return st, fault.New(fault.Failed, "read the host's answer", path, err)
	}
	return st, nil
}

func unreachable(path string, err error) error {
	switch {
	case errors.Is(err, os.ErrPermission):
		return fault.New(fault.Denied, "ask the host", path, os.ErrPermission).WithHint("only root may ask: sudo stead host status")
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fault.New(fault.Unavailable, "ask the host", path, errors.New("no host runs on this machine")).
			WithHint("systemctl start stead-host, or: stead host run --declarations DIR")
	case errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.Timeout, "ask the host", path, errors.New("it does not answer"))
	}
	return fault.New(fault.Unavailable, "ask the host", path, err)
}
