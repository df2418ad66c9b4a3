package main

import (
	"testing"

	"holdfast/plugins/conformance"
	"holdfast/ports"
)

func TestTapeKeepsTheContract(t *testing.T) {
	conformance.Run(t, conformance.InProcess(func() ports.Backend { return &Store{} }))
}
