# Everything that people and CI do with this tree. `make` alone says what there is.

MAKEFLAGS += --no-print-directory
SHELL     := /bin/sh

# One way to compile for the program, its tests and what they put into nodes: nothing is compiled twice. The race detector alone needs cgo.
export CGO_ENABLED = 0
# Linked without the tables of a debugger, which take three quarters of the time of a link; a stack names its lines all the same.
LDFLAGS    := -w
export GOFLAGS += -ldflags=$(LDFLAGS)

GO         ?= go
VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
FUZZTIME   ?= 30s
BENCHTIME  ?= 1s
GOTESTFLAGS ?=
LINTER     := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
NATS       := github.com/nats-io/natscli/nats@v0.5.0

DESTDIR    ?=
PREFIX     ?= /usr/local
BINDIR     ?= $(PREFIX)/bin
UNITDIR    ?= $(PREFIX)/lib/systemd/system

# What the race detector runs: the packages that have more than one goroutine. The tests below test/ drive a built program and find no race in it.
RACED       = ./host ./host/account ./host/delegate ./host/disk ./host/folder ./host/follow ./host/journal ./host/ledger ./host/outbox \
	./host/reconcile ./host/spool ./host/systemd/... ./mesh/... ./modules/... ./runtime/... ./controller/...

.PHONY: help
help: ## list the targets (the default)
	@echo "stead $(VERSION). Targets:"
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  %-13s %s\n", $$1, $$2 }' Makefile

.PHONY: build
build: need-go ## compile the program into build/stead
	@mkdir -p build
	@$(GO) build -ldflags '$(LDFLAGS) -X main.version=$(VERSION)' -o build/stead ./cmd/stead
	@echo "build/stead $(VERSION)"

# Lab tests wait more than they compute, so three packages share two processors; those that take longest begin first. `make lint` vets all of it.
.PHONY: test
test: need-go need-root need-tools need-nats ## run every test, those on a real systemd in lab nodes too (root)
	$(GO) test -vet=off -p 3 -count=1 -timeout 25m $(GOTESTFLAGS) ./test/system ./host/systemd ./test/cases ./test/lab ./...

.PHONY: race
race: need-go need-root need-tools need-cc ## run the tests of the packages under the race detector, in lab nodes too (root); all but RACE_SKIP
	@CGO_ENABLED=1 $(GO) test -race -timeout 10m -skip "$$RACE_SKIP" $(RACED)

.PHONY: lint
lint: need-go build/bin/golangci-lint ## read the code with gofmt, go vet and golangci-lint
	@bad=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$bad" ] || { echo "not formatted, run gofmt -w: $$bad"; exit 1; }
	@$(GO) vet ./...
	@build/bin/golangci-lint run

build/bin/golangci-lint:
	@echo "building the linter once (one to two minutes)"
	@GOBIN=$(CURDIR)/build/bin GOFLAGS=-mod=mod $(GO) install $(LINTER)

.PHONY: fuzz
fuzz: need-go ## run each fuzz target for FUZZTIME (30s); `make test` runs their seeds
	@grep -rl --include='*_test.go' '^func Fuzz' . | xargs -r -n 1 dirname | sort -u | while read -r dir; do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$dir"/*_test.go); do \
			echo "$$dir $$target $(FUZZTIME)"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir" || exit 1; \
		done; \
	done

.PHONY: mutants
mutants: need-go need-root need-tools ## disable each mechanism in turn, and see a test fail (root; about ten minutes); M='words' for some
	@$(GO) run ./test/mutants $(M)

.PHONY: bench
bench: need-go need-root need-tools ## measure against a floor on this machine, side by side (root)
	@$(GO) test -run '^$$' -bench . -benchtime $(BENCHTIME) -timeout 30m ./test/bench

# The tests that hold stead against a manager: the contract, the search path, the links, and the cases. Their binaries run on other releases of
# Debian than this machine's, so they need no library of it. They wait more than they compute, so both versions go side by side.
VERSIONS    ?= 247 257
VERSIONED   := ^TestContract|^TestSearchIsSystemds$$|^TestManagerNamed$$|^TestLinksOfAThousandUnits$$|^TestTheDifferencesBetweenVersions|F[0-9][0-9][0-9]
VERSIONED_IN ?= $$(grep -rlE --include='*_test.go' '^func Test(Contract|SearchIsSystemds|ManagerNamed|LinksOfAThousandUnits|[A-Za-z0-9]*F[0-9]{3})' . | \
	xargs -n 1 dirname | sort -u)

.PHONY: test-versions
test-versions: need-go need-root need-tools ## run the contract suite and the case tests on systemd 247 and 257 (root)
	@.ci/lab-roots bullseye trixie
	@mkdir -p build; in="$(VERSIONED_IN)"; \
	$(GO) test -vet=off -c -o /dev/null $$in || exit 1; \
	for v in $(VERSIONS); do \
		rm -f build/versions-$$v.ok; \
		{ STEAD_LAB_SYSTEMD=$$v $(GO) test -vet=off -p 2 -count=1 -timeout 10m $(GOTESTFLAGS) -run '$(VERSIONED)' $$in > build/versions-$$v 2>&1 && \
			: > build/versions-$$v.ok; } & \
	done; wait; \
	for v in $(VERSIONS); do \
		echo "systemd $$v"; cat build/versions-$$v; [ -e build/versions-$$v.ok ] || bad="$$bad $$v"; \
	done; [ -z "$$bad" ] || { echo "error: tests fail on systemd$$bad" >&2; exit 1; }

.PHONY: demo
demo: need-go need-root need-tools ## show a mesh at work on lab nodes, under a minute (root)
	@$(GO) run ./test/demo

.PHONY: demo-host
demo-host: need-go need-root need-tools ## show one machine that keeps a folder of declarations, under a minute (root)
	@$(GO) run ./test/demo host

.PHONY: check
check: need-go need-root need-tools need-nats ## the long one: every test with STEAD_CHECK=full (root)
	STEAD_CHECK=full $(GO) test -count=1 -timeout 60m ./...

.PHONY: lab-roots
lab-roots: need-root ## make the root file systems of lab nodes with systemd 247, 252 and 257, once (root; Debian packages from a mirror)
	@.ci/lab-roots

.PHONY: lab-sweep
lab-sweep: need-go need-root ## remove lab nodes that nobody answers for any more (root)
	@$(GO) run ./test/lab/node sweep

.PHONY: lab-count
lab-count: need-go need-root need-tools need-nats ## run the tests and record in test/lab/expected how many ran in lab nodes (root)
	@mkdir -p build && rm -f build/lab-ledger
	@STEAD_LAB_LEDGER=$(CURDIR)/build/lab-ledger $(MAKE) test
	@{ echo "# How many lab tests ran at least when all passed; CI fails below it. Written by: make lab-count"; \
	   sort -u build/lab-ledger | wc -l; } > test/lab/expected
	@echo "test/lab/expected: $$(tail -n 1 test/lab/expected)"

.PHONY: install
install: build ## put the program and its unit files below PREFIX (/usr/local), and DESTDIR where it is given
	@install -D -m 0755 build/stead $(DESTDIR)$(BINDIR)/stead
	@echo "$(DESTDIR)$(BINDIR)/stead"
	@for unit in host/stead-host.service controller/stead-controller.service \
			runtime/server/stead-runtime.service runtime/escalate/stead-escalate.service runtime/escalate/stead-escalate.socket; do \
		name=$$(basename $$unit); \
		sed 's,/usr/local/bin/stead,$(BINDIR)/stead,' $$unit > build/$$name && \
		install -D -m 0644 build/$$name $(DESTDIR)$(UNITDIR)/$$name && echo "$(DESTDIR)$(UNITDIR)/$$name" || exit 1; \
	done

.PHONY: clean
clean: ## remove build/
	@rm -rf build

# What the targets above stand on. Each says what is missing and how to get it.

.PHONY: need-go
need-go:
	@command -v $(GO) >/dev/null 2>&1 || { \
		echo "error: Go is not installed; stead needs Go 1.26 or newer" >&2; \
		echo "hint: unpack a release of Go to /usr/local/go and put /usr/local/go/bin on the PATH" >&2; exit 1; }
	@have=$$($(GO) env GOVERSION); minor=$$(echo "$$have" | sed -n 's/^go1\.\([0-9]*\).*/\1/p'); \
	[ "$${minor:-0}" -ge 26 ] || case $$have in devel*) ;; *) \
		echo "error: stead needs Go 1.26 or newer, and this is $$have" >&2; \
		echo "hint: unpack a newer release of Go to /usr/local/go and put /usr/local/go/bin first on the PATH" >&2; exit 1;; esac

.PHONY: need-root
need-root:
	@[ "$$(id -u)" = 0 ] || { \
		echo "error: lab nodes are booted in namespaces, and that needs root" >&2; \
		echo "hint: sudo env PATH=\"\$$PATH\" make $(firstword $(MAKECMDGOALS))" >&2; exit 1; }

.PHONY: need-tools
need-tools:
	@.ci/tools lab

.PHONY: need-nats
need-nats: need-go build/bin/nats

build/bin/nats:
	@echo "building the nats command once (about a minute): tests ask nodes with it"
	@GOBIN=$(CURDIR)/build/bin GOFLAGS=-mod=mod $(GO) install $(NATS) || { \
		echo "error: the nats command, with which tests ask nodes, was not built" >&2; \
		echo "hint: it comes as a Go module, $(NATS); look whether modules can be loaded: $(GO) env GOPROXY" >&2; exit 1; }

.PHONY: need-cc
need-cc:
	@.ci/tools race
