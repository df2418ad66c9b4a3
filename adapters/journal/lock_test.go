package journal

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"holdfast/ports"
)

func TestASecondHostOnADirectoryIsToldAtOnceWhoHasIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	release, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Lock(dir)
	if ports.CodeOf(err) != ports.Conflict || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("%v", err)
	}
	release()
	release()
	again, err := Lock(dir)
	if err != nil {
		t.Fatalf("after it was released: %v", err)
	}
	again()
}

func TestAnotherProcessHoldingAJournalIsNamedAndItsDeathFreesIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "JOURNAL_TEST_APPEND_TO="+dir)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	lines.Scan() // it has the journal open
	_, err = Open(roomy(dir))
	_ = cmd.Process.Kill()
	for lines.Scan() {
	}
	_ = cmd.Wait() // it was killed
	if ports.CodeOf(err) != ports.Conflict || !strings.Contains(err.Error(), fmt.Sprintf("process %d", cmd.Process.Pid)) {
		t.Errorf("%v", err)
	}
	opened(t, roomy(dir))
}

func TestADirectoryThatCannotBeMadeIsAnError(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(file); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("%v", err)
	}
}
