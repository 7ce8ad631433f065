// Package web is the page that people look at: what runs, what ran, what will run, and who runs it.
//
//	GET  /                                the jobs: filtered, sorted, in pages
//	GET  /jobs/{job}                      a job: its policies, its next times, its runs
//	GET  /jobs/{job}/runs/{run}           a run: how far it is, its attempts, its output
//	GET  /cluster                         who leads, who takes part, how etcd does
//	POST /jobs/{job}/trigger, …           a form was sent; the answer is the page that shows what came of it
//	GET  /sign-in, POST /sign-in          a token becomes a cookie, where access asks for one
//	GET  /assets/…                        the style, the script and the icon, under the hash of what they hold
//
// All of it is HTML made here from embedded files, and works without scripts. The script only keeps an open page up to
// date: it listens to /v1/events and, when something has changed, fetches the page's main part anew (the same address
// with the header X-Fragment) and swaps the regions that differ. A region that somebody is about to use is left alone
// until he has moved on.
//
// # Trust
//
// Names, outputs, errors and reasons are anybody's: they go through html/template alone, and no part of the package
// makes HTML otherwise. The pages allow nothing that is not from their own origin, no script and no style between
// their lines, and no frame around them.
//
// # Cost
//
// A page reads a bounded part of what there is. The order of the jobs and the strips of their last runs are kept in
// memory, for a bounded number of jobs, and read again when they are old or the job has had another run.
package web
