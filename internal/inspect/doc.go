// Package inspect reads what is in etcd and says it as people and programs are shown it: by the command line, the
// HTTP API and the web page, so that all give the same answers. The JSON of its types is a contract: fields may be
// added, none is renamed, removed or given another meaning.
//
// Its functions read what stands at that moment. They take a context, which must have a deadline where it matters,
// and the time now; they keep nothing, and may be called at once from anywhere.
package inspect
