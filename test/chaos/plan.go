package chaos

import (
	"math/rand/v2"
	"time"

	"github.com/etcdcron/etcdcron/test/chaos/checker"
)

// The kinds of faults, beside those that the checker knows.
const (
	kill          = "kill"          // kill -9 of an instance, and a new one later
	stop          = "stop"          // SIGTERM of an instance, and a new one later
	cut           = "cut"           // the connections of an instance are closed, and new ones refused
	silence       = "silence"       // nothing gets through between an instance and etcd, and nobody hears why
	deaf          = "deaf"          // an instance hears nothing from etcd, which hears the instance
	mute          = "mute"          // the other way
	slow          = "slow"          // every message of an instance takes longer
	oneSilent     = "one-silent"    // nothing gets through between an instance and one member
	killMember    = "kill-member"   // a member of etcd is killed, and started again
	stopMember    = "stop-member"   // likewise, with a hand-over
	moveLeader    = "move-leader"   // another member leads
	loseQuorum    = "lose-quorum"   // two members are killed, and started again
	restartEtcd   = "restart-etcd"  // all are stopped, and started again
	compact       = "compact"       // all old revisions are compacted
	dethrone      = "dethrone"      // the leader's key is deleted by hand
	resign        = "resign"        // the leader is asked to hand over
	noSpace       = "no-space"      // the alarm is raised, and etcd takes no writes
	deafDethroned = "deaf-dethrone" // the leader's key is deleted, and it does not hear of it
)

// span is how long a fault of a kind lasts, and how much of it there is.
type span struct{ min, max, least, most time.Duration }

// kinds is all of them, in an order that stays.
var kinds = []struct {
	span

	kind string
}{
	{span{min: 0, max: 3 * time.Second}, kill},
	{span{min: 0, max: time.Second}, stop},
	{span{min: 300 * time.Millisecond, max: 8 * time.Second}, checker.Freeze}, // leader 2 s, locks 3 s
	{span{min: 300 * time.Millisecond, max: 7 * time.Second}, cut},
	{span{min: 300 * time.Millisecond, max: 7 * time.Second}, silence},
	{span{min: 300 * time.Millisecond, max: 6 * time.Second}, deaf},
	{span{min: 300 * time.Millisecond, max: 6 * time.Second}, mute},
	{span{min: time.Second, max: 6 * time.Second, least: 20 * time.Millisecond, most: 500 * time.Millisecond}, slow},
	{span{min: time.Second, max: 6 * time.Second}, oneSilent},
	{span{min: 300 * time.Millisecond, max: 4 * time.Second}, killMember},
	{span{min: 300 * time.Millisecond, max: 3 * time.Second}, stopMember},
	{span{}, moveLeader},
	{span{min: 300 * time.Millisecond, max: 5 * time.Second}, loseQuorum},
	{span{min: 0, max: 3 * time.Second}, restartEtcd},
	{span{}, compact},
	{span{}, checker.Revoke},
	{span{}, checker.Unlock},
	{span{}, dethrone},
	{span{}, resign},
	{span{min: time.Second, max: 5 * time.Second, least: -20 * time.Second, most: 4 * time.Second}, checker.Clock},
	{span{min: 500 * time.Millisecond, max: 4 * time.Second}, noSpace},
	{span{min: 500 * time.Millisecond, max: 3 * time.Second}, deafDethroned},
}

// step is a fault in the plan.
type step struct {
	At, For time.Duration // since the beginning
	Kind    string
	Leader  bool          // it is done to who leads, of the library's instances or of the command's; otherwise to Seat
	Seat    int           // of all instances
	Member  int           // of etcd
	Amount  time.Duration // of slow, how late; of clock, how wrong
}

// The manners in which faults come.
const (
	alone   = iota // one after the other
	inPairs        // two at once, then none for a while
	freely         // whenever
	manners
)

// plan is the faults of a seed, in the order in which they begin. It has no other input, so that they can be had again.
// Rounds of all kinds in random order follow each other, each in the next manner; which is the first depends on the seed.
func plan(seed uint64, lasts time.Duration) []step {
	r := rand.New(rand.NewPCG(seed, 0))
	const settle = 2 * time.Second
	var steps []step
	at := time.Second
	for manner := int(seed % manners); ; manner = (manner + 1) % manners {
		over := at // when the faults so far are
		for i, k := range r.Perm(len(kinds)) {
			s := draw(r, k)
			switch {
			case manner == alone, manner == inPairs && i%2 == 0:
				at = over + settle
			case manner == inPairs:
				at += upTo(r, time.Second)
			default:
				at += upTo(r, 3*time.Second)
			}
			s.At = at
			over = max(over, s.At+s.For)
			if over > lasts {
				return steps
			}
			steps = append(steps, s)
		}
		at = over
	}
}

// draw makes a fault of a kind.
func draw(r *rand.Rand, k int) step {
	between := func(low, high time.Duration) time.Duration {
		if high <= low {
			return low
		}
		return low + upTo(r, high-low)
	}
	d := &kinds[k]
	return step{
		Kind: d.kind, Leader: r.IntN(3) > 0, Seat: r.IntN(seats), Member: r.IntN(members),
		For:    between(d.min, d.max).Round(time.Millisecond),
		Amount: between(d.least, d.most).Round(time.Millisecond),
	}
}

func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// How many there are.
const (
	codeSeats = 3 // instances that use the library
	fileSeats = 2 // instances of the command
	seats     = codeSeats + fileSeats
	members   = 3
)
