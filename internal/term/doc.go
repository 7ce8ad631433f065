// Package term shows things to people: tables, colours, relative times, and what they may have meant.
// Whatever it shows is cleaned first: texts from jobs and records must not steer a terminal.
package term
