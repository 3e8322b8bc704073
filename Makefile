# Every step of CI, by the same name. `make help` lists them.

.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

TARGET := $(or $(CARGO_TARGET_DIR),target)
TOOLS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/addon-operator/tools
export PATH := $(TOOLS)/bin:$(PATH)

# How long `make sim` runs.
SECONDS ?= 60

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: ## watch the operator install and mend modules in a real local control plane
	cargo build --release --locked
	cargo run --release --locked --quiet --example demo

.PHONY: test
test: ## all tests, with one control plane for those that need it
	cargo build --workspace --bins --all-targets --locked
	$(TARGET)/debug/testbed run --helm4 --registry -- cargo test --workspace --locked

.PHONY: check
check: fmt lint doc layers deny ## everything about the source that needs no cluster

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
layers: ## who uses whom, sizes, names, links; `UPDATE=1 make layers` renews ARCHITECTURE.md
	cargo test --locked --quiet --test house

.PHONY: deny
deny: $(TOOLS)/bin/cargo-deny ## licences, banned crates and sources of the dependencies
	cargo deny --log-level error check --hide-inclusion-graph licenses bans sources

.PHONY: sim
sim: ## random histories through the core for SECONDS=60, or as long as you like
	cargo run --release --locked --quiet --package addon-sim -- run --seconds $(SECONDS)

.PHONY: bench
bench: ## figures: start, restart with nothing changed, idle
	cargo bench --locked --bench figures

.PHONY: ci
ci: ## what the build server runs: all of the above but bench, timed
	.ci/run

$(TOOLS)/bin/cargo-deny:
	CARGO_TARGET_DIR=$(TOOLS)/target cargo install --locked --quiet --root $(TOOLS) cargo-deny@0.20.2
	rm -rf $(TOOLS)/target
