#!/usr/bin/env bash
# Looks whether the objects of deployed releases do their work, and writes it into status.health: one Bundle after the other, in a queue
# of its own, so that no deploy waits. The objects are read as the account of the Bundle's namespace, and `object health` judges them.
# lib/look.jq decides when. Must never change an object of a release.
source "${FRAMEWORK_DIR:-}/shell_lib.sh"

LIB=$(dirname "$(readlink -f -- "${BASH_SOURCE[0]}")")/lib
# shellcheck source=lib/state.sh
source "$LIB/state.sh"

__config__() {
  jq -n --rawfile bundle "$LIB/bundle.jq" '
    def shared: {keepFullObjectsInMemory: false, waitForSynchronization: false, group: "look", queue: "bundles-look"};
    def bundles($name; $filter): {$name, apiVersion: "operator.werf.dev/v1", kind: "Bundle", jqFilter: $filter} + shared;
    {when: {snapshots: ["deploys"], jqFilter: "any(.snapshots.deploys[]; .deployed != null)"}} as $when
    | {configVersion: "v1",
       settings: {timeout: "10m"},
       schedule: [{name: "due", crontab: "*/10 * * * * *", group: "look", queue: "bundles-look"} + $when],
       kubernetes: [
         # The end of a deploy is a reason to look.
         bundles("deploys"; "\($bundle) seen | {uid, deployed: deployed}") + $when,
         (bundles("bundles"; "\($bundle) seen") + {executeHookOnEvent: [], executeHookOnSynchronization: false})]}'
}

__on_group::look() {
  local bundles namespace name uid account home folder
  state::folder
  state::settings
  bundles=$(context::global::jq -c ".[$BINDING_CONTEXT_CURRENT_INDEX] | .snapshots.bundles // error(\"there is no snapshot of bundles\")
    | map(.filterResult | select(. != null))")
  folder=$(mktemp -d "$STATE/look-XXXXXX")
  # shellcheck disable=SC2064 # the folder of now
  trap "rm -rf -- '$folder'" EXIT
  while IFS=' ' read -r namespace name uid account home; do
    # What was seen is written at the end of the run.
    ((SECONDS < 20)) || break
    if look "$namespace" "$name" "$account" "$home" "$folder" </dev/null; then
      jq -c --arg uid "$uid" '{uid: $uid, rows: .}' "$folder/health"
    else
      jq -c --arg uid "$uid" -Rs '{uid: $uid, error: gsub("\\s+"; " ")}' "$folder/said"
    fi
  done < <(jq -r --slurpfile next <(state::times looks) --argjson now "$(date +%s)" --arg account "${SETTINGS[serviceAccount]}" "$(program)
    (\$next | add // {}) as \$next | due(\$next; \$now)[]
    | [.namespace, .name, .uid, .spec.serviceAccount // \$account, release_home] | join(\" \")" <<<"$bundles") >"$folder/seen"
  tell "$bundles" "$folder"
}

# program: the definitions of all programs here.
program() { cat "$LIB/bundle.jq" "$LIB/look.jq"; }

# tell BUNDLES FOLDER: writes what was seen, and the times of the next looks.
tell() {
  jq -c --slurpfile seen "$2/seen" --argjson limit "${SETTINGS[timeout]}" --argjson now "$(date +%s)" "$(program)
    . as \$bundles
    | (reduce \$seen[] as \$one ({}; .[\$one.uid] = \$one)) as \$by_uid
    | .[] | \$by_uid[.uid] as \$one | select(\$one)
    | (if \$one.error then unseen(\$one.error) else looked(\$one.rows; \$now; \$limit) end) as \$health
    | (select(.health != \$health) | {patch: write(\$health)}),
      (.health = \$health | {time: [.uid, \$now + pause(\$bundles; \$now; \$limit)]})" <<<"$1" >"$2/changes"
  jq -c '.patch | select(.)' "$2/changes" >>"$KUBERNETES_PATCH_PATH"
  jq -r '.time | select(.) | "\(.[0]) \(.[1])"' "$2/changes" | state::keep_times looks
}

# look NAMESPACE NAME ACCOUNT HOME FOLDER: writes the health of the objects of a release into FOLDER/health, or into FOLDER/said why they
# cannot be seen.
look() {
  local folder=$5 config
  config=$(state::kubeconfig_as "$1" "$3" 2>"$folder/said") || return 1
  # Objects without a namespace are in that of the release. A flag would refuse those of other namespaces.
  jq --arg home "$4" '.contexts[0].context.namespace = $home' "$config" >"$folder/kubeconfig" 2>"$folder/said" || return 1
  state::helm_as "$1" "$3" 30 get manifest --namespace="$4" -- "$2" >"$folder/manifest" 2>"$folder/said" || return 1
  if ! see --ignore-not-found --filename="$folder/manifest" >"$folder/objects" 2>"$folder/said"; then
    # A chart may make nothing.
    [[ $(<"$folder/said") == *"no objects passed to get"* ]] || return 1
  fi
  judge || return 1
  ask_around
  judge --around "$folder/around"
}

# see ARGUMENT...: kubectl get, for the look of now. It makes a request for each object, and must not hold up looks at other Bundles.
see() { KUBECONFIG=$folder/kubeconfig timeout --kill-after=5 40 kubectl --request-timeout=20s get --output=json "$@"; }

# judge ARGUMENT...: judges the objects of the look of now.
judge() {
  state::program object health --output json --expected "$folder/manifest" "$@" "$folder/objects" >"$folder/health" 2>"$folder/said"
}

# ask_around: reads the pods and Events that tell the cause. An account that may not see them gets a sentence without it.
ask_around() {
  local kinds flag namespace
  : >"$folder/around"
  while IFS=$'\x01' read -r kinds flag namespace; do
    see "$kinds" "$flag" --namespace="$namespace" 2>/dev/null >>"$folder/around" || true
  done < <(jq -r --slurpfile objects "$folder/objects" "$(program) questions(\$objects) | join(\"\\u0001\")" "$folder/health")
}

hook::run "$@"
