package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"holdfast/adapters/mesh"
	"holdfast/internal/exitcode"
)

// configHash is `holdfast config hash`.
type configHash struct{}

func (configHash) Help() string {
	return "Reads one line, the password of a mesh user, and prints its hash for `password` in the mesh block: `read -rs p; holdfast config hash <<<\"$p\"`. The password itself may stand there too; the hash gives it away to nobody who reads the file."
}

func (configHash) Run(in *invocation) error {
	line, err := bufio.NewReader(in.stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("standard input: %w", err)
	}
	password := strings.TrimRight(line, "\r\n")
	if password == "" {
		return exitcode.With(exitcode.Usage, errors.New("no password was given; write it to standard input, in one line"))
	}
	_, err = fmt.Fprintln(in.stdout, mesh.HashPassword(password))
	return err
}
