package executor

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// identity is whom a command runs as.
type identity struct {
	text       string // as in the jobs file
	uid, gid   uint32
	groups     []uint32 // beside gid
	name, home string   // "" when this machine knows no such user
}

// numbers are a user and a group that need not be known to the machine.
var numbers = regexp.MustCompile(`^([0-9]{1,10}):([0-9]{1,10})$`)

// checkUser says what is wrong with the text alone; nil if nothing. The user itself may be on another machine.
func checkUser(text string) error {
	_, _, numeric, err := parseNumbers(text)
	switch {
	case err != nil:
		return err
	case numeric:
		return nil
	case strings.Trim(text, "0123456789") == "":
		return fmt.Errorf("%q is a number alone; write uid:gid, such as 1000:1000, or a name", text)
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == ':' || r == '/' || r == 0x7f }):
		return fmt.Errorf("%q is neither a user's name nor uid:gid", text)
	default:
		return nil
	}
}

func parseNumbers(text string) (uid, gid uint32, ok bool, err error) {
	m := numbers.FindStringSubmatch(text)
	if m == nil {
		return 0, 0, false, nil
	}
	u, err1 := strconv.ParseUint(m[1], 10, 32)
	g, err2 := strconv.ParseUint(m[2], 10, 32)
	const nobody = 1<<32 - 1 // (uid_t)-1 means "leave it" to the kernel
	if err1 != nil || err2 != nil || u == nobody || g == nobody {
		return 0, 0, false, fmt.Errorf("%q: a uid and a gid are at most %d", text, uint32(nobody-1))
	}
	return uint32(u), uint32(g), true, nil
}

// lookupUser finds whom a command is to run as, and whether this process may start it so.
func lookupUser(text string) (*identity, error) {
	id := &identity{text: text}
	uid, gid, numeric, err := parseNumbers(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadUser, err)
	}
	if numeric {
		id.uid, id.gid = uid, gid
		if u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10)); err == nil {
			id.name, id.home = u.Username, u.HomeDir
		}
	} else if err := id.lookup(text); err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 && !id.isOurs() {
		return nil, fmt.Errorf("%w: only a scheduler that is root can run a command as %s, and this one has uid %d; start it as root, or leave user out",
			ErrBadUser, text, os.Geteuid())
	}
	return id, nil
}

func (id *identity) lookup(name string) error {
	u, err := user.Lookup(name)
	if unknown := user.UnknownUserError(""); errors.As(err, &unknown) {
		return fmt.Errorf("%w: there is no user %q on this machine; add it here, or write its numbers as uid:gid", ErrBadUser, name)
	}
	if err != nil {
		return fmt.Errorf("%w %q: %w", ErrBadUser, name, err)
	}
	groups, err := u.GroupIds()
	if err != nil {
		return fmt.Errorf("%w %q: its groups cannot be found: %w", ErrBadUser, name, err)
	}
	numbers := make([]uint32, 0, 2+len(groups))
	for _, text := range append([]string{u.Uid, u.Gid}, groups...) {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return fmt.Errorf("%w %q: its id %q is no number", ErrBadUser, name, text)
		}
		numbers = append(numbers, uint32(n))
	}
	id.uid, id.gid, id.groups = numbers[0], numbers[1], numbers[2:]
	id.name, id.home = u.Username, u.HomeDir
	return nil
}

// isOurs reports whether the scheduler itself is this user: then nothing is changed, and no right is needed.
func (id *identity) isOurs() bool {
	return id.uid == uint32(os.Geteuid()) && id.gid == uint32(os.Getegid()) //nolint:gosec // ids are 32 bits
}

// credential is what the kernel is to change; nil for nothing.
func (id *identity) credential() *syscall.Credential {
	if id == nil || id.isOurs() {
		return nil
	}
	return &syscall.Credential{Uid: id.uid, Gid: id.gid, Groups: id.groups}
}

// homeVariables are those that say who one is; the scheduler's own must not be taken for the user's.
var homeVariables = []string{"HOME", "USER", "LOGNAME"}

func (id *identity) variables() []string {
	if id.name == "" {
		return []string{"HOME=/"}
	}
	return []string{"HOME=" + id.home, "USER=" + id.name, "LOGNAME=" + id.name}
}
