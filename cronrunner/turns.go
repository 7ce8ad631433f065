package cronrunner

// Turns: jobs that are to claim a run and find no slot free wait for one in order, in one place of the line that
// attempts have for slots.

// takeSlot takes a slot for a run of js, or has js queue up for one.
func (t *term) takeSlot(js *jobState, turn bool) bool {
	if turn && (t.inHand || t.s.attempts.reserve()) {
		t.inHand = false
		return true
	}
	if !js.waits {
		js.waits = true
		t.waiting = append(t.waiting, js)
	}
	return false
}

// granted is closed when the slot is ours that we wait for; nil while we wait for none.
func (t *term) granted() <-chan struct{} {
	if t.place == nil {
		return nil
	}
	return t.place.granted
}

// slotInHand reports whether there is a slot for the first job that waits for one, and has us wait in line for it
// otherwise.
func (t *term) slotInHand() bool {
	if !t.inHand && t.place == nil {
		t.place = t.s.attempts.queueUp()
	}
	if t.place != nil && isClosed(t.place.granted) {
		t.place, t.inHand = nil, true
	}
	return t.inHand
}

// leaveLine gives up what slotInHand has got or waits for.
func (t *term) leaveLine() {
	if t.place != nil {
		t.s.attempts.withdraw(t.place)
	}
	if t.inHand {
		t.s.attempts.release()
	}
	t.place, t.inHand = nil, false
}
