#!/usr/bin/env bash
# Asks registries for the versions of Bundles, and writes the answers into status.target. All Bundles that are due are one batch of
# `package choose`, which asks one repository with one login once. lib/poll.jq decides. Must never show a password.
source "${FRAMEWORK_DIR:-}/shell_lib.sh"

LIB=$(dirname "$(readlink -f -- "${BASH_SOURCE[0]}")")/lib
# shellcheck source=lib/state.sh
source "$LIB/state.sh"

__config__() {
  jq -n --rawfile bundle "$LIB/bundle.jq" '
    def shared: {keepFullObjectsInMemory: false, waitForSynchronization: false, group: "poll", queue: "bundles-poll"};
    def bundles($name; $filter): {$name, apiVersion: "operator.werf.dev/v1", kind: "Bundle", jqFilter: $filter} + shared;
    {configVersion: "v1",
     settings: {timeout: "10m"},
     schedule: [{name: "due", crontab: "*/10 * * * * *", group: "poll", queue: "bundles-poll", when: {snapshots: ["bundles"]}}],
     kubernetes: [
       bundles("questions"; "\($bundle) seen | {uid, question: question, paused, ending: (.ending != null)}"),
       # Answers are no reason to ask.
       (bundles("bundles"; "\($bundle) seen") + {executeHookOnEvent: [], executeHookOnSynchronization: false})]}'
}

__on_group::poll() {
  local due
  state::folder
  due=$(bundles | jq -c --slurpfile next <(state::times times) --argjson now "$(date +%s)" \
    "$(program) (\$next | add // {}) as \$next | asked(\$next; \$now)")
  [[ $due != '[]' ]] || return 0
  state::prepare
  ask "$due"
}

# program: the definitions of all programs here.
program() { cat "$LIB/bundle.jq" "$LIB/poll.jq"; }

bundles() {
  context::global::jq -c ".[$BINDING_CONTEXT_CURRENT_INDEX] | .snapshots.bundles // error(\"there is no snapshot of bundles\")
    | map(.filterResult | select(. != null))"
}

# ask BUNDLES: asks about these, and writes the answers.
ask() {
  local work answers interval=${SETTINGS[interval]} plain=${SETTINGS[plainHttp]}
  work=$(mktemp -d "$STATE/poll-XXXXXX")
  # shellcheck disable=SC2064 # the folder of now
  trap "rm -rf -- '$work'" EXIT
  read_logins "$1" "$work"
  # Logins that cannot be read are answers, too.
  if ! answers=$(jq -c --argjson plain "$plain" --slurpfile logins "$work/logins" "$(program)
      (\$logins | add // {}) as \$logins
      | [.[] | package(\$logins; \$plain) | select(.login.error | not)]" <<<"$1" |
    state::program package choose --batch - --per-second "${SETTINGS[questionsPerSecond]}" --within 20 "${REACH[@]}" 2>"$work/said"); then
    # Without an answer the Bundles would say for ever that they are being checked.
    answers=$(jq -c --arg said "$(tail -c 500 "$work/said" | tr -s '\n' ' ')" \
      'map({id: .uid, error: "the registry could not be asked: \($said)"})' <<<"$1")
  fi
  cat "$work/said" >&2
  jq -c --argjson answers "$answers" --argjson plain "$plain" --slurpfile logins "$work/logins" --argjson interval "$interval" --argjson now "$(date +%s)" "$(program)
    (\$logins | add // {}) as \$logins
    | (reduce \$answers[] as \$answer ({}; .[\$answer.id] = \$answer)) as \$by_id
    | .[] | . as \$bundle
    | (\$by_id[.uid] // {error: package(\$logins; \$plain).login.error}) as \$answer
    | answered(\$answer) as \$change
    | select(\$change)
    | {time: [.uid, \$now + pause(\$answer; \$interval)]},
      (select(changes(\$change)) | {patch: write(\$change)})" <<<"$1" >"$work/changes"
  jq -c '.patch | select(.)' "$work/changes" >>"$KUBERNETES_PATCH_PATH"
  jq -r '.time | select(.) | "\(.[0]) \(.[1])"' "$work/changes" | state::keep_times times
}

# read_logins BUNDLES FOLDER: reads each Secret that a Bundle names, as the account of the Bundle, eight at a time.
read_logins() {
  local namespace secret account running=0
  : >"$2/logins"
  while IFS=$'\x01' read -r namespace secret account; do
    [[ -n $secret ]] || continue
    ((running += 1))
    read_login "$namespace" "$secret" "$account" "${account:-${SETTINGS[serviceAccount]}}" >"$2/login-$running" &
    ((running % 8)) || wait
  done < <(jq -r '[.[] | [.namespace, .spec.auth // "", .spec.serviceAccount // ""]] | unique[] | join("\u0001")' <<<"$1")
  wait
  ((running == 0)) || cat "$2"/login-* >"$2/logins"
}

# read_login NAMESPACE SECRET KEY ACCOUNT: prints the login, or the error in its place.
read_login() {
  local said
  if said=$(state::kubectl_as "$1" "$4" get --output=json -- secret "$2" 2>&1); then
    jq -c --arg key "$1/$2/$3" --arg name "Secret $2" '
      {($key): (if .data.username and .data.password then {username: (.data.username | @base64d), password: (.data.password | @base64d)}
                else {error: "\($name) lacks the keys username and password"} end)}' <<<"$said"
  else
    jq -nc --arg key "$1/$2/$3" --arg said "${said//$'\n'/; }" '{($key): {error: "cannot read the login: \($said)"}}'
  fi
}

hook::run "$@"
