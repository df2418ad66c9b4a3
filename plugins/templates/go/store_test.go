package main

import (
	"testing"

	"holdfast/plugins/conformance"
	"holdfast/ports"
)

func TestTheStoreKeepsTheContract(t *testing.T) {
	conformance.Run(t, conformance.InProcess(func() ports.Backend { return &Store{} }))
}
