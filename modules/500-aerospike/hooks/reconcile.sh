#!/usr/bin/env bash
# Keeps a ConfigMap, a Service, a PodDisruptionBudget and a StatefulSet for each AerospikeCluster, and writes its status. Each run
# compares all objects with the wanted ones, so that neither a lost event nor a restart matters. Must never change an object that
# the cluster does not own, and deletes nothing: objects of a deleted cluster go by their owner references.
source "${FRAMEWORK_DIR:-}/shell_lib.sh"

__config__() {
  # shellcheck disable=SC2016 # the dollars are for jq
  local owner='(.metadata.ownerReferences // []
    | map(select(.controller and .kind == "AerospikeCluster" and (.apiVersion | startswith("aerospike.dzolotov.tech/"))))
    | .[0].uid) as $owner
    | {namespace: .metadata.namespace, name: .metadata.name, owner: $owner}'
  local own='{uid: .metadata.uid, labels: .metadata.labels, annotations: .metadata.annotations, spec'
  jq -n --arg owner "$owner" --arg own "$own" '
    def common: {keepFullObjectsInMemory: false, group: "aerospike", queue: "aerospike"};
    # Without clusters nothing else matters.
    def with_clusters: {when: {snapshots: ["clusters"]}};
    def objects($name; $api; $kind; $filter): {$name, apiVersion: $api, kind: $kind, jqFilter: $filter} + common;
    # Of an object of another owner the name is enough.
    def owned($more): "\($owner) + if $owner then \($own)\($more)} else {} end";
    {configVersion: "v1", beforeHelm: 10,
     # A ConfigMap of another owner that is gone now causes no event.
     schedule: [{name: "again", crontab: "*/5 * * * *", group: "aerospike", queue: "aerospike"} + with_clusters],
     kubernetes: [
       objects("clusters"; "aerospike.dzolotov.tech/v1alpha1"; "AerospikeCluster";
         "{uid: .metadata.uid, namespace: .metadata.namespace, name: .metadata.name, generation: .metadata.generation, spec,
           ending: (.metadata.deletionTimestamp != null)}"),
       # A status that was written here is no reason to run.
       (objects("statuses"; "aerospike.dzolotov.tech/v1alpha1"; "AerospikeCluster"; "{uid: .metadata.uid, status}")
        + {executeHookOnEvent: [], executeHookOnSynchronization: false}),
       # All that its health depends on.
       objects("sets"; "apps/v1"; "StatefulSet"; owned(", generation: .metadata.generation, ending: .metadata.deletionTimestamp, status"))
       + with_clusters,
       objects("services"; "v1"; "Service"; owned("")) + with_clusters,
       objects("budgets"; "policy/v1"; "PodDisruptionBudget"; owned("")) + with_clusters,
       # There are many ConfigMaps, and some are large.
       (objects("config-maps"; "v1"; "ConfigMap"; owned(", data"))
        + {labelSelector: {matchExpressions: [{key: "aerospike.dzolotov.tech/cluster", operator: "Exists"}]}} + with_clusters),
       objects("namespaces"; "v1"; "Namespace";
         "{name: .metadata.name, ending: (.status.phase == \"Terminating\" or .metadata.deletionTimestamp != null)}") + with_clusters]}'
}

__on_group::aerospike() {
  reconcile
}

# Before the release: values such as the image may have changed.
__main__() {
  reconcile
}

reconcile() {
  local health
  health=$(judged_sets)
  # shellcheck disable=SC2016 # the dollars are for jq
  context::jq -c -L "$(dirname "${BASH_SOURCE[0]}")/lib" --slurpfile values "$VALUES_PATH" --slurpfile health <(echo "$health") '
    include "state";
    .snapshots as $snapshots
    | ["clusters", "statuses", "sets", "services", "budgets", "config-maps", "namespaces"]
    # An unknown list is not an empty one.
    | map({key: ., value: ($snapshots[.] // error("there is no snapshot of \(.)") | map(.filterResult | select(. != null)))})
    | from_entries as $seen
    | all_operations($seen; $health[0]; $values[0].aerospike)
  ' >>"$KUBERNETES_PATCH_PATH"
}

# judged_sets: prints the health of the StatefulSets of clusters, as `object health` does, or null if it cannot be judged: then counts
# have to be enough.
judged_sets() {
  local sets
  # shellcheck disable=SC2016
  sets=$(context::jq -c -L "$(dirname "${BASH_SOURCE[0]}")/lib" 'include "state";
    [.snapshots.sets // [] | .[].filterResult | select(.owner?) | set_object]')
  if [[ $sets == '[]' ]]; then
    echo '[]'
  elif ! "${ADDON_OPERATOR_PROGRAM:-addon-operator}" object health --output json <<<"$sets"; then
    echo 'The health of StatefulSets cannot be judged: their counts decide' >&2
    echo null
  fi
}

hook::run "$@"
