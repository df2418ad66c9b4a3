package pgtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// keeper ends and removes everything below a folder once this process is gone. It is a shell in a session of its own, so that what
// is sent to the group of this process does not end it first.
type keeper struct {
	base string // where all servers of this process lie
	user *syscall.Credential
	pipe io.WriteCloser // held open as long as this process lives

	mu   sync.Mutex
	next int
}

// A process belongs to the folder in which it works. QUIT lets a PostgreSQL give its shared memory back; who does not hear that is killed.
const keeperScript = `
cat >/dev/null
below() { ls -l /proc/[0-9]*/cwd 2>/dev/null | sed -n "s|.*/proc/\([0-9]*\)/cwd -> $1/.*|\1|p"; }
kill -QUIT $(below "$1") 2>/dev/null
n=0
while pids=$(below "$1"); [ -n "$pids" ] && [ $n -lt 200 ]; do
	[ $n -ge 100 ] && kill -KILL $pids 2>/dev/null
	n=$((n+1))
	sleep 0.05
done
sed -n "s|^[^ ]* \($1/[^ ]*\) .*|\1|p" /proc/mounts | while read -r m; do umount -l "$m"; done
rm -rf "$1"
`

var keeping = sync.OnceValues(startKeeper)

func startKeeper() (*keeper, error) {
	k := &keeper{}
	var err error
	if k.user, err = unprivileged(); err != nil {
		return nil, err
	}
	if k.base, err = os.MkdirTemp("", "hfpg"); err != nil { // short: sockets lie below it
		return nil, err
	}
	if k.base, err = filepath.EvalSymlinks(k.base); err != nil { // as the kernel names it
		return nil, err
	}
	cmd := exec.Command("/bin/sh", "-c", keeperScript, "keeper", k.base)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Dir = "/"
	if k.pipe, err = cmd.StdinPipe(); err == nil {
		err = errors.Join(k.own(k.base), cmd.Start())
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(k.base))
	}
	return k, nil
}

// unprivileged is the user that runs a root's servers; nil when this process may run them itself. initdb wants one that has a name.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"nobody", "postgres", "daemon"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL refuses root, and this machine has no user nobody to run it as")
}

// own gives a file or a folder to the user that runs the servers.
func (k *keeper) own(path string) error {
	if k.user == nil {
		return nil
	}
	return os.Chown(path, int(k.user.Uid), int(k.user.Gid))
}

// folder makes a folder for one server, which its user alone can enter.
func (k *keeper) folder() (string, error) {
	k.mu.Lock()
	k.next++
	dir := filepath.Join(k.base, strconv.Itoa(k.next))
	k.mu.Unlock()
	return dir, errors.Join(os.Mkdir(dir, 0o700), k.own(dir))
}

// command prepares a program that works in a folder, as the user of the servers, with the libraries that it came with. What it says
// goes to the file "log" there.
func (k *keeper) command(p programs, dir, program string, args ...string) (cmd *exec.Cmd, log *os.File, err error) {
	log, err = os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	cmd = exec.Command(filepath.Join(p.bin, program), args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + p.bin + ":/usr/bin:/bin", "HOME=" + dir, "LC_ALL=C", "TZ=UTC"}
	if p.libraries != "" {
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+p.libraries)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: k.user}
	return cmd, log, nil
}

// run runs a program to its end.
func (k *keeper) run(p programs, dir, program string, args ...string) error {
	cmd, log, err := k.command(p, dir, program, args...)
	if err != nil {
		return err
	}
	defer log.Close()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, tail(dir))
	}
	return nil
}

// tail is the end of what the programs in a folder said.
func tail(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// workingIn lists the live processes that work in a folder.
func workingIn(dir string) (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if at, err := os.Readlink(link); err != nil || at != dir {
			continue // a process that ended or is none of this
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ended says whether a child is dead, waited for or not.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}
