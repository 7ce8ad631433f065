package cronrunner

// Slots: how many handlers are called at once on an instance is bounded. Who finds none free waits in one line,
// be it the term's loop for the jobs that wait there, or a run for its next attempt. A slot that is given back
// goes to who has waited longest.

// ticket is a place in the line for a slot.
type ticket struct {
	granted chan struct{} // closed when the slot is its holder's
}

// reserve takes a slot, if one is free and nobody waits for it.
func (as *attempts) reserve() bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	return as.reserveLocked()
}

func (as *attempts) reserveLocked() bool {
	if as.slots >= as.s.cfg.MaxConcurrent {
		return false // whoever gives one back gives it to the line
	}
	as.slots++
	return true
}

// queueUp takes a place in the line. The slot is the holder's once it is granted, unless he has withdrawn.
func (as *attempts) queueUp() *ticket {
	as.mu.Lock()
	defer as.mu.Unlock()
	t := &ticket{granted: make(chan struct{})}
	if as.reserveLocked() {
		close(t.granted)
	} else {
		as.line = append(as.line, t)
	}
	return t
}

// withdraw gives up a place in the line, or the slot if it was granted.
func (as *attempts) withdraw(t *ticket) {
	as.mu.Lock()
	defer as.mu.Unlock()
	for i, other := range as.line {
		if other == t {
			as.line = append(as.line[:i], as.line[i+1:]...)
			return
		}
	}
	as.releaseLocked()
}

// release gives back a slot.
func (as *attempts) release() {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.releaseLocked()
}

func (as *attempts) releaseLocked() {
	if len(as.line) == 0 {
		as.slots--
		return
	}
	next := as.line[0]
	as.line = as.line[1:]
	close(next.granted)
}

// leaveSlot gives back the slot of an execution whose handler is not called now.
func (as *attempts) leaveSlot(x *execution) {
	as.mu.Lock()
	defer as.mu.Unlock()
	close(x.returned)
	as.releaseLocked()
}

// enterSlot notes that the next attempt of an execution has a slot.
func (as *attempts) enterSlot(x *execution) {
	as.mu.Lock()
	defer as.mu.Unlock()
	x.returned = make(chan struct{})
}
