#!/usr/bin/env bash
# Adjusts the neighbour tables to the number of nodes: each node has all others as neighbours, and the kernel's table must
# have room for them. Thresholds grow by doubling, so that a single new node seldom needs a rollout.
source "${FRAMEWORK_DIR:-}/shell_lib.sh"

# The default size of the kernel's table, and the largest size that is worth its memory.
readonly LEAST=1024 MOST=131072

__config__() {
  cat <<'YAML'
configVersion: v1
beforeHelm: 20
kubernetes:
  - name: nodes
    apiVersion: v1
    kind: Node
    executeHookOnEvent: [Added, Deleted]
    jqFilter: .metadata.name
    keepFullObjectsInMemory: false
    includeSnapshotsFrom: [nodes]
YAML
}

# All contexts of a run have the same snapshot: the present number of nodes.
__main__() {
  local nodes wanted entries=$LEAST
  nodes=$(context::jq '.snapshots.nodes | length')
  wanted=$(jq --argjson nodes "$nodes" '.sysctlTuner.neighboursPerNode // 0 | . * $nodes | ceil' "$VALUES_PATH")
  while ((entries < wanted && entries < MOST)); do
    entries=$((entries * 2))
  done
  # shellcheck disable=SC2016 # the dollars are for jq
  jq -n --argjson entries "$entries" --argjson least "$LEAST" '
    def threshold($number; $value): {"net.ipv4.neigh.default.gc_thresh\($number)": "\($value)"};
    [{op: "add", path: "/sysctlTuner/neighbours",
      value: (if $entries == $least then {}
              else threshold(1; $entries / 8) + threshold(2; $entries / 2) + threshold(3; $entries) end)}]
  ' >"$VALUES_JSON_PATCH_PATH"
}

hook::run "$@"
