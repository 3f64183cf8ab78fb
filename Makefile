# `make demo` and `make test` are all that a newcomer needs; `make help` lists the rest.

.DEFAULT_GOAL := help
.PHONY: help build demo check test programs test-conformance conformance-table soak fuzz corpus sim mutants bench bench-wan bench-relay bench-monitor bench-cc bench-lanes bench-attach test-vm crash audit

export CARGO_TERM_COLOR ?= auto

# Two for each processor: many tests wait for a clock or for another program.
export RUST_TEST_THREADS ?= $(shell expr 2 \* $$(nproc))

# BPF programs are compiled where there is all that it takes, by Debian's names.
MISSING_FOR_BPF := $(strip \
  $(if $(shell command -v clang),,clang) \
  $(if $(wildcard /usr/include/libelf.h),,libelf-dev) \
  $(if $(wildcard /usr/include/zlib.h),,zlib1g-dev))
BPF := $(if $(MISSING_FOR_BPF),,--features ropewalk/bpf)
BPF_EVERYWHERE := $(if $(BPF),$(BPF) --features ropewalk-benches/bpf)
BUILD := cargo build --release -p ropewalk $(BPF)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 28

build: ## build the ropewalk command, target/release/ropewalk
	@scripts/setup build
	@echo "$(if $(BPF),With the BPF programs (congestion controls and traces of the kernel),Without the BPF programs (congestion controls and traces of the kernel): missing $(MISSING_FOR_BPF))"
	$(BUILD)

demo: ## copy a real disk image through broken connections, then across an emulated path: two minutes
	@scripts/setup demo
	$(BUILD) -q
	scripts/demo

check: ## format, lints and the tests that need no root: under 3 minutes
	@scripts/setup build
	cargo fmt --all --check
	tests/mutants/run --check
	cargo clippy -q --workspace --all-targets $(BPF_EVERYWHERE) -- -D warnings
	$(if $(BPF),cargo clippy -q --workspace -- -D warnings)
	cargo test -q --workspace --exclude ropewalk-interop --exclude ropewalk-machines --exclude ropewalk-soak $(BPF_EVERYWHERE)

test: ## everything: also the peers, faults and long properties (some need root)
	@scripts/setup test
	@$(MAKE) --no-print-directory --jobs=2 check programs
	cargo test -q -p ropewalk-interop -p ropewalk-soak
	"$${CARGO_TARGET_DIR:-target}/release/ropewalk-sim" --seeds 1000

# Built while the tests of `check` run, many of which wait for a clock.
programs:
	$(BUILD) -q -p ropewalk-sim

sim: ## run simulated worlds with faults: make sim SEEDS=100000 SEED=1
	cargo run -q --release -p ropewalk-sim -- --seeds $(or $(SEEDS),1000) --seed $(or $(SEED),1)

mutants: ## prove that the simulator finds bugs: builds and runs each of tests/mutants
	tests/mutants/run

test-vm: ## Linux's own iSCSI and NBD, and our congestion controls, in a virtual machine with Debian's kernel: under five minutes, after a download
	@scripts/setup test
	@scripts/vm prepare
	$(BUILD) -q
	cargo test -q -p ropewalk-machines --no-run
	REQUIRE=machine scripts/vm network cargo test -q --offline -p ropewalk-machines -- --test-threads 2

test-conformance: ## every test of libiscsi's suite on every kind of disk, in a minute or two
	@scripts/setup test
	$(BUILD) -q
	cargo run -q -p ropewalk-conformance

conformance-table: ## the same; shows what changed, and writes tests/conformance/RESULTS.md
	@scripts/setup test
	$(BUILD) -q
	cargo run -q -p ropewalk-conformance -- --update

crash: ## kill targets, connections and attached disks under mounted filesystems; make crash ROUNDS=100; needs root
	@scripts/setup test
	$(BUILD) -q
	cargo run -q --release -p ropewalk-crash -- --rounds $(or $(ROUNDS),16) --seed $(or $(SEED),1)

soak: ## a thousand sessions on one target for five minutes while connections break; make soak SECONDS=60
	@scripts/setup build
	$(BUILD) -q
	cargo run -q --release -p ropewalk-soak -- --seconds $(or $(SECONDS),300)

fuzz: ## fuzz all that takes bytes from peers; SECONDS=600 gives each ten minutes
	@scripts/setup fuzz
	scripts/fuzz $(or $(SECONDS),10)

corpus: ## add what real programs say to each other to the fuzzers' corpus
	@scripts/setup test
	$(BUILD) -q
	cargo run -q -p ropewalk-fuzz-targets --example record_corpus

bench: ## speed against iSCSI peers and against plain sockets; writes benches/RESULTS.md
	@scripts/setup bench
	benches/run

bench-wan: ## copies over long paths beside QEMU, nbdcopy and rsync; two hours, writes benches/WAN.md; QUICK=1 writes results/wan-quick
	@scripts/setup bench
	benches/wan $(if $(QUICK),--quick)

bench-relay: ## what the lab's relay can carry, and how exactly; writes benches/RELAY.md
	@scripts/setup build
	benches/relay

bench-monitor: ## what the lab's instruments cost at 500 Mbit/s; writes benches/MONITOR.md
	@scripts/setup test
	benches/monitor

bench-cc: ## what congestion controls of ours cost for each acknowledgement; writes benches/CC.md
	@scripts/setup test
	benches/cc

bench-lanes: ## split sessions and threads for each direction where the processor is the limit; writes benches/LANES.md
	benches/lanes

bench-attach: ## attached disks beside nbdkit's, and across ten milliseconds; writes benches/ATTACH.md
	@scripts/setup bench
	benches/attach

audit: ## licences and advisories of the dependencies
	@command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
	cargo deny check licenses bans sources advisories
