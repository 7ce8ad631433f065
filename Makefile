# Short names for plain commands; Go, git and bash are all that they need.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
FUZZTIME ?= 10s

# The linters are rebuilt when their versions change, or Go's.
TOOLS := bin/tools/.built-$(shell go env GOVERSION)

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the command, static, into bin/etcdcron
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/etcdcron ./cmd/etcdcron

.PHONY: test
test: ## run all tests
	go test ./...
	go -C examples/billing test ./...
	go -C test/bench test ./...
	go -C test/browser test ./...
	go -C test/deploy test ./...

.PHONY: race
race: ## run all tests under the race detector (needs a C compiler)
	go test -race ./...
	go -C examples/billing test -race ./...
	go -C test/bench test -race ./...
	go -C test/browser test -race ./...
	go -C test/deploy test -race ./...

.PHONY: cover
cover: ## run all tests and report coverage, by line in bin/cover.html
	@mkdir -p bin
	go test -coverpkg=./... -coverprofile=bin/cover.out ./...
	go tool cover -html=bin/cover.out -o bin/cover.html
	go tool cover -func=bin/cover.out | tail -n 1

.PHONY: demo-billing
demo-billing: ## charge 10,000 accounts, kill and freeze instances meanwhile, and count
	@go -C examples/billing run . demo

.PHONY: bench
bench: ## measure etcdcron and others side by side, about 15 minutes; figures go to docs/benchmarks
	@go -C test/bench run . -out ../../docs/benchmarks

.PHONY: screenshots
screenshots: ## take the pictures of the web page in docs/images (needs chromium)
	@go -C test/browser test -count=1 -run '^TestScreenshots$$' . -screenshots "$(CURDIR)/docs/images"

DURATION ?= 30m
SEED ?= 0

.PHONY: soak
soak: ## chaos for DURATION (30m), by SEED (0 draws one); the report goes to bin/soak.json too
	@mkdir -p bin
	go test ./test/chaos -run 'TestSoak$$' -v -count=1 -timeout 0 -chaos.duration $(DURATION) -chaos.seed $(SEED) -chaos.report "$(CURDIR)/bin/soak.json"

.PHONY: mutations
mutations: ## put each deliberate fault into our own code, and see that the chaos tests catch it
	go test -tags mutation -run TestEachMutationIsCaught -parallel 2 -count=1 ./test/chaos

.PHONY: fuzz-short
fuzz-short: ## run each fuzz target for FUZZTIME (10s)
	@go test -list '^Fuzz' ./... \
	| awk '/^Fuzz/ { names[++n] = $$1 } /^ok/ { for (i = 1; i <= n; i++) print $$2, names[i]; n = 0 }' \
	| while read -r package target; do \
		echo "$$package $$target"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$package" </dev/null || exit 1; \
	done

.PHONY: lint
lint: $(TOOLS) ## run the linters
	bin/tools/golangci-lint run ./...
	cd examples/billing && ../../bin/tools/golangci-lint run ./...
	cd test/bench && ../../bin/tools/golangci-lint run ./...
	cd test/browser && ../../bin/tools/golangci-lint run ./...
	cd test/deploy && ../../bin/tools/golangci-lint run ./...

.PHONY: fmt
fmt: $(TOOLS) ## format all Go code
	bin/tools/golangci-lint fmt ./...
	cd examples/billing && ../../bin/tools/golangci-lint fmt ./...
	cd test/bench && ../../bin/tools/golangci-lint fmt ./...
	cd test/browser && ../../bin/tools/golangci-lint fmt ./...
	cd test/deploy && ../../bin/tools/golangci-lint fmt ./...

.PHONY: vuln
vuln: $(TOOLS) ## look for known vulnerabilities (needs vuln.go.dev)
	bin/tools/govulncheck ./...

.PHONY: tidy
tidy: ## tidy all modules
	go mod tidy
	go -C tools mod tidy
	go -C examples/billing mod tidy
	go -C test/bench mod tidy
	go -C test/browser mod tidy
	go -C test/deploy mod tidy

.PHONY: ci
ci: ## run all that must hold before a change lands
	.ci/run

.PHONY: clean
clean: ## remove what was built
	rm -rf bin

$(TOOLS): tools/go.mod tools/go.sum
	@mkdir -p $(@D)
	go build -C tools -o ../bin/tools/ tool
	@rm -f $(@D)/.built-*
	@touch $@
