#!/usr/bin/env bash
# Deploys and uninstalls the releases of Bundles with helm. Four queues work side by side: each takes the next Bundle that has work and
# that no other has claimed, so that a slow Bundle holds up no other. Everything that belongs to a release is read and written as the
# account of the Bundle's namespace. Must never uninstall a release whose Bundle is not known to be going.
source "${FRAMEWORK_DIR:-}/shell_lib.sh"

LIB=$(dirname "$(readlink -f -- "${BASH_SOURCE[0]}")")/lib
# shellcheck source=lib/state.sh
source "$LIB/state.sh"

__config__() {
  jq -n --rawfile bundle "$LIB/bundle.jq" '
    # There is work for so many slots. One that is busy has a Bundle with work.
    def needed($group): {when: {snapshots: ["work-\($group)"],
      jqFilter: "[.snapshots[][] | select(.work != null)] | length >= \($group | ltrimstr("slot-"))"}};
    [range(1; 5) | {group: "slot-\(.)", queue: "bundles-deploy-\(.)"}] as $slots
    | {configVersion: "v1",
       settings: {timeout: "3h"},
       schedule: ($slots | map({name: "again-\(.group)", crontab: "*/30 * * * * *", when: {snapshots: ["bundles-\(.group)"]}} + .)),
       kubernetes: ([$slots[]
         | ({name: "bundles-\(.group)", apiVersion: "operator.werf.dev/v1", kind: "Bundle", keepFullObjectsInMemory: false,
            # The start of the module waits for no helm.
            waitForSynchronization: false} + .)
         | . as $shared
         # New work is a reason to run.
         | ($shared + {name: "work-\($shared.group)", jqFilter: "\($bundle) seen | {uid, work: work}"} + needed($shared.group)),
           ($shared + {jqFilter: "\($bundle) seen", executeHookOnEvent: [], executeHookOnSynchronization: false})])}'
}

__on_group::slot-1() { work_off; }
__on_group::slot-2() { work_off; }
__on_group::slot-3() { work_off; }
__on_group::slot-4() { work_off; }

# program: the definitions of all programs here.
program() { cat "$LIB/bundle.jq" "$LIB/deploy.jq"; }

# work_off: works on one Bundle after the other. After a minute it leaves the rest to the next run, which sees a newer list.
work_off() {
  local namespace name uid count=0
  state::folder
  while read -r namespace name uid; do
    ((SECONDS < 60)) || break
    claim "$uid" || continue
    ((count)) || state::prepare
    ((count += 1))
    # In the background, because a failure in a condition would not end it.
    ( trap 'rm -rf -- "$STATE/claims/$uid"' EXIT; work_on "$namespace" "$name" "$uid" ) &
    wait "$!" || printf 'The work on %s/%s ended badly, and will be begun again\n' "$namespace" "$name"
  done < <(context::global::jq -r --argjson now "$(date +%s)" "$(program)
    .[$BINDING_CONTEXT_CURRENT_INDEX].snapshots | to_entries | map(select(.key | startswith(\"bundles-\")))[0].value
    // error(\"there is no snapshot of bundles\") | map(.filterResult | select(. != null)) | to_do(\$now)[] | [.namespace, .name, .uid] | join(\" \")")
}

# claim UID: takes a Bundle for this process. A claim of a process that is gone counts no more.
claim() {
  local owner mine pid=$BASHPID
  mine="$pid $(started "$pid")"
  if ! mkdir "$STATE/claims/$1" 2>/dev/null; then
    owner=$(cat "$STATE/claims/$1/owner" 2>/dev/null) || owner=
    # Without a name it is being taken at this moment.
    [[ -n $owner && $(started "${owner%% *}") != "${owner##* }" ]] || return 1
    # Of several that take it over one succeeds.
    mv "$STATE/claims/$1" "$STATE/claims/$1-$BASHPID" 2>/dev/null && rm -rf -- "$STATE/claims/$1-$BASHPID" || return 1
    mkdir "$STATE/claims/$1" 2>/dev/null || return 1
  fi
  printf '%s' "$mine" >"$STATE/claims/$1/owner"
}

# started PID: the time at which a process has started, which tells it from a later one of that number.
started() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
  awk '{ print $20 }' <<<"${stat##*) }"
}

# work_on NAMESPACE NAME UID: does the work of one Bundle, whose present state is read first. The functions below share its facts.
work_on() {
  local facts=()
  NAMESPACE=$1 NAME=$2
  # A Bundle that cannot be read is one without work: it is seen again.
  mapfile -d '' -t facts < <(trap - ERR; state::kubectl --namespace="$1" get bundles.operator.werf.dev --output=json -- "$2" 2>/dev/null |
    jq -j --arg uid "$3" --argjson now "$(date +%s)" --argjson plain "${SETTINGS[plainHttp]}" --arg account "${SETTINGS[serviceAccount]}" \
      "$(program) seen | facts(\$uid; \$now; \$plain; \$account) | tostring + \"\\u0000\"")
  ((${#facts[@]} == 10)) || return 0
  BUNDLE=${facts[1]} ACCOUNT=${facts[2]} VALUES=${facts[3]} AUTH=${facts[4]} UNENDED=${facts[5]}
  HOUSE=${facts[6]} VERSION=${facts[7]} CHART=${facts[8]} REGISTRY=${facts[9]}
  if [[ ${facts[0]} == uninstall ]]; then uninstall; else deploy; fi
}

# tell PROGRAM ARGUMENT...: patches the Bundle by what the program makes of it. A Bundle that is gone needs no state.
tell() {
  local change said
  change=$(jq -c --argjson now "$(date +%s)" "${@:2}" "$(program) $1" <<<"$BUNDLE")
  said=$(state::kubectl --namespace="$NAMESPACE" patch bundles.operator.werf.dev --type=merge --patch="$change" -- "$NAME" 2>&1) ||
    [[ $said == *NotFound* ]] || { printf '%s\n' "$said" >&2; return 1; }
}

# report TYPE REASON MESSAGE: an Event. Where it cannot be written, as in a namespace that is going, the log has it.
report() {
  printf '%s/%s: %s\n' "$NAMESPACE" "$NAME" "$3"
  jq -c --arg type "$1" --arg reason "$2" --arg message "$3" --argjson now "$(date +%s)" \
    "$(program) event(\$type; \$reason; \$message; \$now)" <<<"$BUNDLE" | state::kubectl create --filename=- >/dev/null 2>&1 || true
}

# deploy: rolls the target out.
deploy() {
  local folder said
  folder=$(mktemp -d "$STATE/deploy-XXXXXX")
  if said=$(roll_out "$folder" 2>&1); then
    tell done
    report Normal Deployed "$VERSION is deployed"
  else
    said=$(tail -c 1000 <<<"$said" | tr -s '\n' ' ')
    # shellcheck disable=SC2016 # the dollars are for jq
    tell 'failed($said; $interval; $now; $ended)' --arg said "$said" --argjson interval "${SETTINGS[interval]}" \
      --argjson ended "$([[ -e $folder/ended ]] && echo true || echo false)"
    report Warning DeployFailed "$VERSION: $said"
  fi
  rm -rf -- "$folder"
}

# roll_out FOLDER: pulls the chart by its digest, and calls helm. What it prints is the reason if it fails.
roll_out() {
  local flags=() values='' status
  mapfile -t flags < <(jq -r "$(program) flags" <<<"$BUNDLE")
  values=$(write_values "$1") || { echo "$values"; return 1; }
  # shellcheck disable=SC2016
  tell 'begun($now; $sum)' --arg sum "$values" || return 1
  report Normal Update "$VERSION is being deployed" >/dev/null
  write_login "$1" || return 1
  state::program module pull "$CHART" "$1/chart" --credentials "$1/login.json" "${REACH[@]}" "${KEYS[@]}" >/dev/null || return 1
  mend "$1" || return 1
  # Only a namespace that is not there is created: the account may have no right to create one.
  state::kubectl get namespace -- "$HOUSE" >/dev/null 2>&1 || flags+=(--create-namespace)
  while IFS= read -r status; do flags+=(--values "$status"); done < <(find "$1/values" -type f | sort)
  local ended=0
  helm_as upgrade --install --namespace="$HOUSE" --history-max=10 "${flags[@]}" \
    "--timeout=${SETTINGS[timeout]}s" --wait="${SETTINGS[wait]}" -- "$NAME" "$1/chart" >/dev/null || ended=$?
  # A helm that was killed leaves a pending record.
  ((ended >= 124)) || touch "$1/ended"
  return "$ended"
}

# helm_as ARGUMENT...: helm for this Bundle. It ends a little after the timeout that it knows itself.
helm_as() { state::helm_as "$NAMESPACE" "$ACCOUNT" "$((SETTINGS[timeout] + 60))" "$@"; }

# write_values FOLDER: writes each key of the ConfigMap into a file, and prints the sum of the data.
write_values() {
  local said key
  mkdir "$1/values"
  [[ -n $VALUES ]] || return 0
  said=$(state::kubectl_as "$NAMESPACE" "$ACCOUNT" get --output=json -- configmap "$VALUES" 2>&1) ||
    { printf 'cannot read the values: %s' "$said"; return 1; }
  while IFS= read -r key; do
    jq -j --arg key "$key" '.data[$key]' <<<"$said" >"$1/values/$key"
  done < <(jq -r '.data // {} | keys[]' <<<"$said")
  jq -r "$(program) .data // {} | sum_of" <<<"$said"
}

# write_login FOLDER: writes the logins for the registry.
write_login() {
  local said
  if [[ -z $AUTH ]]; then
    echo '{"auths": {}}' >"$1/login.json"
    return
  fi
  said=$(state::kubectl_as "$NAMESPACE" "$ACCOUNT" get --output=json -- secret "$AUTH" 2>&1) ||
    { printf 'cannot read the login: %s' "$said"; return 1; }
  (umask 077; jq --arg registry "$REGISTRY" '{auths: {($registry): {username: (.data.username | @base64d),
    password: (.data.password | @base64d)}}}' <<<"$said" >"$1/login.json")
}

# mend FOLDER: ends a call of helm that was killed. Its record would stay pending, and helm would refuse to work. Only
# a call that the state of the Bundle tells of is ended: another one may be of a person.
mend() {
  local said record state
  # No release, or no right to see it: helm will tell.
  said=$(helm_as history --namespace="$HOUSE" --max=1 --output=json -- "$NAME" 2>/dev/null) || return 0
  state=$(jq -r '.[-1].status' <<<"$said")
  [[ $state == pending-* ]] || return 0
  if [[ $UNENDED != true ]]; then
    echo "the release is $state by another helm: wait for its end, or call 'helm rollback $NAME --namespace $HOUSE'"
    return 1
  fi
  record="sh.helm.release.v1.$NAME.v$(jq -r '.[-1].revision' <<<"$said")"
  said=$(state::kubectl_as "$NAMESPACE" "$ACCOUNT" --namespace="$HOUSE" get --output=json -- secret "$record") || return 1
  # The text is changed and not parsed: a JSON parser might change numbers in it.
  said=$(jq -r .data.release <<<"$said" | base64 --decode | base64 --decode | gzip --decompress |
    sed "s/\"status\":\"$state\"/\"status\":\"failed\"/" | gzip | base64 --wrap=0)
  jq -n --arg release "$said" '{metadata: {labels: {status: "failed"}}, data: {release: ($release | @base64)}}' >"$1/record"
  state::kubectl_as "$NAMESPACE" "$ACCOUNT" --namespace="$HOUSE" patch --type=merge --patch-file="$1/record" \
    -- secret "$record" >/dev/null || return 1
}

# uninstall: removes the release of a Bundle that is being deleted.
uninstall() {
  local said
  # With --ignore-not-found helm would also ignore that it may not look.
  if said=$(helm_as uninstall --namespace="$HOUSE" "--timeout=${SETTINGS[timeout]}s" -- "$NAME" 2>&1) ||
    [[ $said == *": release: not found" ]]; then
    tell uninstalled
    report Normal Uninstalled "the release is uninstalled"
  else
    said=$(tail -c 1000 <<<"$said" | tr -s '\n' ' ')
    # shellcheck disable=SC2016
    tell 'failed($said; $interval; $now; false)' --arg said "$said" --argjson interval 60
    report Warning UninstallFailed "$said"
  fi
}

hook::run "$@"
