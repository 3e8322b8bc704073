#!/usr/bin/env bash
# Counts the nodes: before each release, and when a node comes or goes. Needs jq.
set -euo pipefail

if [[ ${1-} == --config ]]; then
  cat <<'YAML'
configVersion: v1
beforeHelm: 10
kubernetes:
  - name: nodes
    apiVersion: v1
    kind: Node
    executeHookOnEvent: [Added, Deleted]
    jqFilter: .metadata.name
    keepFullObjectsInMemory: false
    includeSnapshotsFrom: [nodes]
YAML
  exit 0
fi

nodes=$(jq '.[-1].snapshots.nodes | length' "$BINDING_CONTEXT_PATH")
jq --null-input --argjson nodes "$nodes" \
  '[{op: "add", path: "/{{key}}/internal", value: {nodes: $nodes}}]' >"$VALUES_JSON_PATCH_PATH"
