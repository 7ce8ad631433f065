package cronrunner

import (
	"fmt"
	"testing"
	"time"
)

func BenchmarkScheduleNext(b *testing.B) {
	for _, tc := range []struct{ name, schedule, zone string }{
		{"secondly", "* * * * * *", ""},
		{"daily", "30 4 * * *", ""},
		{"daily in a zone", "30 2 * * *", "Europe/Berlin"},
		{"weekday of a month", "0 9 * * MON#1", ""},
		{"leap day", "0 0 29 2 *", ""},
		{"every 90 s", "@every 90s", ""},
	} {
		b.Run(tc.name, func(b *testing.B) {
			s, err := ParseSchedule(tc.schedule, tc.zone)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			t := noon
			for b.Loop() {
				if t = s.Next(t); t.IsZero() || t.Year() > 2200 {
					t = noon
				}
			}
		})
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, tc := range []struct {
		name  string
		job   Job
		since time.Duration // from the cursor to now
	}{
		{"nothing due", Job{Schedule: "0 0 * * *"}, time.Hour},
		{"one due", Job{Schedule: "* * * * * *"}, time.Second},
		{"queue of 20", Job{Schedule: "* * * * * *", Overlap: Overlap{Policy: Queue}}, 20 * time.Second},
		{"latest of a day", Job{Schedule: "* * * * * *"}, 24 * time.Hour},
		{"all of a day", Job{Schedule: "* * * * * *", CatchUp: CatchUp{Policy: All}}, 24 * time.Hour},
	} {
		b.Run(tc.name, func(b *testing.B) {
			j := mustCompile(b, tc.job)
			s := situation{cursor: noon, room: 1, left: unlimited, since: noon.Add(-time.Hour)}
			b.ReportAllocs()
			for b.Loop() {
				decide(j, s, noon.Add(tc.since))
			}
		})
	}
}

// A tick of a timetable with 100,000 jobs, however many are due in it.
func BenchmarkTimetableDue(b *testing.B) {
	const jobs = 100_000
	for _, tc := range []struct {
		name     string
		schedule func(i int) string
		jitter   time.Duration
	}{
		{"none due", func(int) string { return "0 0 1 1 *" }, 0},
		{"spread over a minute", func(i int) string { return fmt.Sprintf("%d * * * * *", i%60) }, 0},
		{"spread over a day", func(i int) string { return fmt.Sprintf("%d %d %d * * *", i%60, i/60%60, i/3600%24) }, 0},
		{"each with its jitter", func(int) string { return "0 * * * *" }, time.Hour},
		{"all due", func(int) string { return "* * * * * *" }, 0},
	} {
		b.Run(tc.name, func(b *testing.B) {
			table := newTimetable()
			for i := range jobs {
				j := Job{Name: fmt.Sprint("job-", i), Schedule: tc.schedule(i), Jitter: tc.jitter}
				table.add(&jobState{job: mustCompile(b, j)}, noon)
			}
			b.ReportAllocs()
			due, now := 0, noon
			for b.Loop() {
				now = now.Add(time.Second)
				table.due(now, func(*jobState, time.Time) { due++ })
			}
			b.ReportMetric(float64(due)/float64(b.N), "due/op")
		})
	}
}
