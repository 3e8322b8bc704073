#!/usr/bin/env bash
# Gives each namespace of a team a quota of pods. A quota that is there already is left alone.
source "${FRAMEWORK_DIR:-}/shell_lib.sh"

__config__() {
  cat <<'YAML'
configVersion: v1
kubernetes:
  - name: teams
    apiVersion: v1
    kind: Namespace
    executeHookOnEvent: [Added]
    labelSelector:
      matchExpressions: [{key: team, operator: Exists}]
    jqFilter: "{name: .metadata.name, active: (.status.phase == \"Active\")}"
    keepFullObjectsInMemory: false
YAML
}

# The namespaces that are there when the operator starts.
__on_kubernetes::teams::synchronization() {
  local name
  context::jq -r '.objects[].filterResult | select(.active) | .name' | while read -r name; do
    give_quota "$name"
  done
}

# One that came later.
__on_kubernetes::teams::added() {
  local name
  if context::is_true filterResult.active; then
    name=$(context::get --required filterResult.name)
    give_quota "$name"
  fi
}

give_quota() {
  cat >>"$KUBERNETES_PATCH_PATH" <<YAML
---
operation: CreateIfNotExists
object:
  apiVersion: v1
  kind: ResourceQuota
  metadata: {namespace: $1, name: pods}
  spec: {hard: {pods: "50"}}
YAML
}

hook::run "$@"
