package live

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/reusecheck/reusecheck"
	"golang.org/x/sys/unix"
)

// withoutUsers says whether a trace names no user, so that a user namespace of
// one user is enough.
func withoutUsers(tr *reusecheck.Trace) bool {
	for i := range tr.Steps {
		if tr.Steps[i].Op.UID != 0 {
			return false
		}
	}
	return true
}

// lacks says whether an error names something that cannot be done.
func lacks(err error, what string) bool {
	u := new(reusecheck.Unsupported)
	return errors.As(err, &u) && u.What == what
}

func TestInAUserNamespaceEveryTraceWithoutUsersRuns(t *testing.T) {
	s := open(t, Options{UserNamespace: true})
	eachTrace(t, func(t *testing.T, tr *reusecheck.Trace) {
		if !withoutUsers(tr) {
			t.Skip("it names users")
		}
		need(t, s.Reset(tr.Config))
		for i := range tr.Steps {
			got, err := s.Do(tr.Steps[i].Op)
			if lacks(err, redirectName) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := tr.Steps[i].Want; want.Kind != reusecheck.Unstated && want != got.Answer {
				t.Errorf("line %d: %v, want %v", tr.Steps[i].Line, got.Answer, want)
			}
		}
	})
}

func TestInAUserNamespaceUsersAreSaidToBeMissing(t *testing.T) {
	s := open(t, Options{UserNamespace: true})
	need(t, s.Reset(reusecheck.Config{}))
	op := reusecheck.NewSocket(0, reusecheck.TCP4, 0)
	op.UID = 1001
	if _, err := s.Do(op); !lacks(err, "uids") {
		t.Errorf("a socket of another user: %v", err)
	}
	op.UID = 0
	if _, err := s.Do(op); err != nil {
		t.Error(err)
	}
	if _, err := s.Do(reusecheck.SetOwner(0, 1001)); !lacks(err, "uids") {
		t.Errorf("a socket given to another user: %v", err)
	}
	for _, f := range s.Features() {
		if f.Name == "uids" && f.OK {
			t.Error("the features have uids")
		}
	}
	if n := s.Namespaces(); n != 1 {
		t.Errorf("%d namespaces were made, want 1", n)
	}
}

const nobody = 65534

// again runs one test in a copy of this program.
func again(name string, env string, uid uint32) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+name+"$", "-test.v")
	cmd.Env = append(os.Environ(), env)
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	return cmd
}

func TestAUserWithoutPrivilegesIsServedInAUserNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		need(t, os.Chdir("/"))
		s := open(t, Options{})
		if _, ok := s.engine.(*helper); !ok {
			t.Fatalf("uid %d did not need a user namespace", os.Geteuid())
		}
		eachTrace(t, func(t *testing.T, tr *reusecheck.Trace) {
			for i := range tr.Steps {
				if op := &tr.Steps[i].Op; op.Verb == reusecheck.VInherit && op.Addr.Port() != 0 { // whether it is done or not
					t.Skip("a redirection takes privileges")
				}
			}
			if !withoutUsers(tr) {
				t.Skip("it names users")
			}
			run(t, s, tr)
		})
		return
	}
	out, err := again(t.Name(), "CI=", nobody).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "--- SKIP: "+t.Name()+" ") {
		need(t, fmt.Errorf("skipped as nobody:\n%s", out))
	}
	if !strings.Contains(string(out), "--- PASS: "+t.Name()+"/bind-timewait.trace") {
		t.Errorf("no trace was run as nobody:\n%s", out)
	}
}

// A user namespace that shares the network namespace of the machine may make
// new ones, and not go back.
func TestWhoCannotGoBackFromANamespaceIsServedInAUserNamespace(t *testing.T) {
	const variable = "REUSECHECK_TEST_STRANGER"
	if os.Getenv(variable) != "" {
		s := open(t, Options{})
		if _, ok := s.engine.(*helper); !ok {
			t.Fatal("it did not need a user namespace of its own")
		}
		need(t, s.Reset(reusecheck.Config{}))
		if _, err := s.Do(reusecheck.NewSocket(0, reusecheck.TCP4, 0)); err != nil {
			t.Error(err)
		}
		return
	}
	open(t, Options{UserNamespace: true})
	stranger := again(t.Name(), variable+"=1", 0)
	stranger.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	if out, err := stranger.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAHelperEndsWithTheProgramThatAsksIt(t *testing.T) {
	const variable = "REUSECHECK_TEST_ASKER"
	if os.Getenv(variable) != "" {
		s := open(t, Options{UserNamespace: true})
		fmt.Println("helper", s.engine.(*helper).cmd.Process.Pid)
		select {} // until it is killed
	}
	open(t, Options{UserNamespace: true})
	asker := again(t.Name(), variable+"=1", 0)
	out, err := asker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := asker.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "helper "); ok {
			pid, _ = strconv.Atoi(rest)
		}
	}
	if pid == 0 {
		t.Fatal("the helper was not started")
	}
	if err := asker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = asker.Wait() // it was killed
	for end := time.Now().Add(DefaultWait); ; pause() {
		if hasEnded(pid) {
			return
		}
		if time.Now().After(end) {
			_ = unix.Kill(pid, unix.SIGKILL)
			t.Fatalf("helper %d is still there", pid)
		}
	}
}

// hasEnded says whether a process has ended, or waits only to be collected.
func hasEnded(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(rest, "Z")
}

func TestAProgramThatDoesNotServeSaysWhatIsMissing(t *testing.T) {
	t.Setenv(helperVariable, "1")
	_, err := Open(Options{UserNamespace: true})
	u := new(Unavailable)
	if !errors.As(err, &u) || !strings.Contains(err.Error(), "live.Serve") {
		t.Errorf("%v: want what is unavailable, and live.Serve", err)
	}
}
