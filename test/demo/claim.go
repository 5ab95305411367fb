package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/modules"
	"stead/seats"
)

// claim speaks as a runtime that lacks one verb, with the credentials in a folder: it claims node-service-manager for its node, and prints what
// controllers say to that.
func claim(ctx context.Context, s *screen, dir string) error {
	who, err := identity.ReadCredentials(filepath.Join(dir, "runtime.json"))
	if err != nil {
		return err
	}
	conn, err := mesh.Connect(ctx, mesh.Options{
		Credentials: func() (identity.Credentials, error) { return who, nil }, Name: "runtime " + who.Name, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Wait(ctx); err != nil {
		return err
	}
	verdict, err := file(ctx, conn, sevenVerbs(subject.Node(who.Name)))
	if err == nil && verdict.Refused == "" {
		err = errors.New("the claim was accepted")
	}
	if err == nil {
		fmt.Fprintln(s.out, verdict.Refused)
	}
	return err
}

// sevenVerbs is the claim of a module that does not serve the journal.
func sevenVerbs(node subject.Node) seats.Claim {
	c := modules.Catalogue()[0].Claim(seats.NodeServiceManager, node)
	c.Verbs = slices.DeleteFunc(c.Verbs, func(v subject.Verb) bool { return v == seats.Journal })
	return c
}

// file files one claim.
func file(ctx context.Context, conn *mesh.Conn, c seats.Claim) (wire.Verdict, error) {
	question, err := json.Marshal(wire.ClaimRequest{Wire: wire.Version, Claims: []seats.Claim{c}})
	if err != nil {
		return wire.Verdict{}, err
	}
	answer, err := conn.Call(ctx, subject.ForNode(c.Node, subject.Claim), question)
	if err != nil {
		return wire.Verdict{}, err
	}
	var reply wire.ClaimReply
	if err := json.Unmarshal(answer, &reply); err != nil {
		return wire.Verdict{}, err
	}
	if len(reply.Verdicts) != 1 {
		return wire.Verdict{}, fmt.Errorf("%d verdicts of one claim", len(reply.Verdicts))
	}
	return reply.Verdicts[0], nil
}
