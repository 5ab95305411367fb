package cli

import (
	"context"
	"fmt"
	"io"

	"stead/host/folder"
	"stead/host/shape"
	"stead/mesh/wire"
)

// fromInput is how a file reads that came from standard input.
const fromInput = "standard input"

// texts are the files of an apply, as they were read.
type texts struct {
	files    []wire.File
	warnings []string
	// names are those that this version reads in the files, problems what it finds
	// wrong. Controllers judge; this is for who reaches none.
	names    []string
	problems shape.Problems
}

// readTexts reads files and folders in their order; "-" is in. The error holds
// every shape.Problem of the paths.
func readTexts(ctx context.Context, in io.Reader, paths []string) (texts, error) {
	var t texts
	var bytes int64
	for _, path := range paths {
		read, err := t.read(ctx, in, path)
		if err != nil {
			return t, err
		}
		for _, f := range read {
			bytes += int64(len(f.Data))
			t.files = append(t.files, wire.File{Name: f.Name, Text: string(f.Data)})
			services, problems := shape.Parse(f.Name, f.Data)
			for _, s := range services {
				t.names = append(t.names, s.Name)
			}
			t.problems = append(t.problems, problems...)
		}
	}
	if bytes > shape.MaxBatch {
		return t, shape.Problems{{File: paths[0], Rule: fmt.Sprintf("the declaration files have %d bytes in all; at most %d are taken at a time", bytes, shape.MaxBatch),
			Cure: "declare less at a time"}}.Err()
	}
	t.problems = t.problems.Limit()
	return t, nil
}

func (t *texts) read(ctx context.Context, in io.Reader, path string) ([]folder.Text, error) {
	if path != "-" {
		read, warnings, err := folder.Texts(ctx, path)
		t.warnings = append(t.warnings, warnings...)
		return read, err
	}
	data, err := io.ReadAll(io.LimitReader(in, shape.MaxBatch+1))
	if err == nil && len(data) == 0 {
		err = fmt.Errorf("it is empty")
	}
	if err != nil {
		return nil, shape.Problems{{File: fromInput, Rule: "it cannot be read: " + err.Error(), Cure: "write declarations into it"}}.Err()
	}
	return []folder.Text{{Name: fromInput, Data: data}}, nil
}
