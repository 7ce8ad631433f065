package executor

import (
	"fmt"
	"syscall"
)

// signal sends sig to every process of the group.
func (g *group) signal(sig syscall.Signal) error {
	if g.id <= 1 {
		return fmt.Errorf("%d is not a command's group", g.id) // kill(2) takes -1 for everybody
	}
	return syscall.Kill(-g.id, sig)
}
