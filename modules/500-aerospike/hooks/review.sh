#!/usr/bin/env bash
# Reviews AerospikeClusters: completes the spec, and refuses one that breaks limits, with all of them in one answer. The mutating
# review refuses, too, because the API server asks it before it compares with the schema, which would name only its own limits.
source "${FRAMEWORK_DIR:-}/shell_lib.sh"

__config__() {
  cat <<'YAML'
configVersion: v1
kubernetesMutating:
  - name: defaults.aerospike.dzolotov.tech
    # While no operator answers, the schema holds the limits, and the reconciliation the defaults.
    failurePolicy: Ignore
    timeoutSeconds: 5
    matchConditions: &staying
      # A finalizer must always be removable.
      - {name: is-not-being-deleted, expression: "!has(object.metadata.deletionTimestamp)"}
    rules: &rules
      - apiGroups: [aerospike.dzolotov.tech]
        apiVersions: [v1alpha1]
        resources: [aerospikeclusters]
        operations: [CREATE, UPDATE]
        scope: Namespaced
kubernetesValidating:
  - name: limits.aerospike.dzolotov.tech
    failurePolicy: Ignore
    timeoutSeconds: 5
    matchConditions: *staying
    rules: *rules
YAML
}

# The beginning of both programs.
# shellcheck disable=SC2016 # the dollars are for jq
readonly FACTS='
  include "spec";
  .review.request
  | .object.spec as $given
  | ($given | completed) as $spec
  # An edit of labels must pass, whatever an earlier version has let through.
  | (.operation == "UPDATE" and .oldObject.spec == $given) as $untouched
  | (if $untouched then [] else
       [(select(.operation == "CREATE") | .object.metadata.name // "" | select(. != "") | violations_of_name),
        ($spec | violations[]),
        (select(.operation == "UPDATE") | select(.oldObject.spec.storage != $given.storage) | storage_is_fixed)]
     end) as $violations
  | if $violations != [] then
      {allowed: false, message: "\($violations | length) to correct: \($violations | join("; "))"}
    else'

__on_mutating::defaults.aerospike.dzolotov.tech() {
  # shellcheck disable=SC2016
  review '
    (if $untouched then [] else
       [($spec | to_entries[] | select($given[.key] != .value) | {op: "add", path: "/spec/\(.key)", value}),
        ($given | keys[] | select($spec[.] == null) | {op: "remove", path: "/spec/\(.)"})]
     end) as $patch
    | {allowed: true} + (if $patch == [] then {} else {patch: ($patch | tojson | @base64)} end)'
}

__on_validating::limits.aerospike.dzolotov.tech() {
  # shellcheck disable=SC2016
  review '
    ($values[0].aerospike.image // "" | test("enterprise|:ee-")) as $enterprise
    | [if $enterprise then empty else
         ($spec | select(.strongConsistency) | "spec.strongConsistency"),
         ($spec | select(.compressionLevel != null) | "spec.compressionLevel")
         | "\(.): a server of the Community Edition does not start with it" end] as $warnings
    | {allowed: true} + (if $warnings == [] then {} else {$warnings} end)'
}

# review ANSWER: writes the answer of this program, or the refusal.
review() {
  context::jq -L "$(dirname "${BASH_SOURCE[0]}")/lib" --slurpfile values "${VALUES_PATH:-/dev/null}" "$FACTS $1 end" \
    >"$ADMISSION_RESPONSE_PATH"
}

hook::run "$@"
