#!/usr/bin/env bash
# Keeps the states of Bundles: finalizers, forced deploys, the Jobs of werf, conditions and Events. Each run compares all Bundles, so
# that neither a lost event nor a restart matters. lib/follow.jq decides. poll.sh asks registries, and deploy.sh calls helm.
source "${FRAMEWORK_DIR:-}/shell_lib.sh"

LIB=$(dirname "$(readlink -f -- "${BASH_SOURCE[0]}")")/lib

__config__() {
  jq -n --rawfile bundle "$LIB/bundle.jq" '
    def shared: {keepFullObjectsInMemory: false, group: "follow", queue: "bundles"};
    # Without Bundles nothing else matters.
    def with_bundles: {when: {snapshots: ["bundles"]}};
    {configVersion: "v1", afterDeleteHelm: 10,
     # For ends that only time brings: of a wait after a failure, and of the patience with a release that is not uninstalled.
     schedule: [{name: "again", crontab: "*/15 * * * * *", group: "follow", queue: "bundles"} + with_bundles],
     kubernetes: [
       # With the generation: a condition counts only for the generation that it names.
       ({name: "bundles", apiVersion: "operator.werf.dev/v1", kind: "Bundle",
         jqFilter: "\($bundle) seen + {generation: .metadata.generation, conditions: (.status.conditions // [])}"} + shared),
       ({name: "config-maps", apiVersion: "v1", kind: "ConfigMap",
         fieldSelector: {matchExpressions: [{field: "metadata.name", operator: "NotEquals", value: "kube-root-ca.crt"}]},
         # Of the data a sum is enough.
         jqFilter: "\($bundle) {namespace: .metadata.namespace, name: .metadata.name, files: (.data // {} | keys), sum: (.data // {} | sum_of)}",
         when: {snapshots: ["bundles"],
                jqFilter: ".filterResult as $map | any(.snapshots.bundles[]; .namespace == $map.namespace and .spec.values == $map.name)"}}
        + shared),
       ({name: "jobs", apiVersion: "batch/v1", kind: "Job",
         labelSelector: {matchExpressions: [{key: "operator.werf.dev/bundle", operator: "Exists"}]},
         jqFilter: "(.status.conditions // [] | map(select(.status == \"True\"))) as $is
           | {name: .metadata.name, namespace: .metadata.namespace, uid: .metadata.labels[\"operator.werf.dev/bundle\"],
              state: (if any($is[]; .type == \"Complete\") then \"succeeded\" elif any($is[]; .type == \"Failed\") then \"failed\" else \"active\" end),
              message: ($is | map(select(.type == \"Failed\") | .message) | .[0])}"}
        + shared + with_bundles),
       ({name: "namespaces", apiVersion: "v1", kind: "Namespace",
         jqFilter: "{name: .metadata.name, ending: (.status.phase == \"Terminating\" or .metadata.deletionTimestamp != null)}"} + shared + with_bundles)]}'
}

__on_group::follow() {
  follow
}

# The module is off: Bundles are let go, and releases stay.
__main__() {
  # shellcheck disable=SC2016 # the dollars are for jq
  plan 'listed("bundles")[] | .generation as $generation
    | ({operation: "MergePatch", apiVersion: "\(api)/v1", kind: "Bundle", namespace, name, ignoreMissingObject: true,
       mergePatch: ({status: {conditions: [{type: "Ready", status: "Unknown", reason: "Off", message: "the module bundles is off",
                                            lastTransitionTime: ($now | todate), observedGeneration: ($generation + 1)}]}})}),
      (select(is_ours) | {operation: "RemoveFinalizer", apiVersion: "\(api)/v1", kind: "Bundle", namespace, name, finalizer: finalizer,
                          ignoreMissingObject: true})' | operations
}

follow() {
  plan "$(<"$LIB/job.jq") $(<"$LIB/follow.jq")" | operations
}

# plan PROGRAM: prints what the program makes of the snapshots.
plan() {
  context::global::jq -c --slurpfile values "${VALUES_PATH:-/dev/null}" --argjson now "$(date +%s)" "$(<"$LIB/bundle.jq")
    .[$BINDING_CONTEXT_CURRENT_INDEX] as \$context
    | def listed(\$binding): \$context.snapshots[\$binding]
        // (if \$context.type == \"Group\" then error(\"there is no snapshot of \(\$binding)\") else [] end)
        | map(.filterResult | select(. != null));
    $1"
}

# operations: writes the operations on standard input, and logs the notes among them.
operations() {
  local line
  while IFS= read -r line; do
    if [[ $line == '{"note":'* ]]; then jq -r .note <<<"$line"; else printf '%s\n' "$line" >>"$KUBERNETES_PATCH_PATH"; fi
  done
}

hook::run "$@"
