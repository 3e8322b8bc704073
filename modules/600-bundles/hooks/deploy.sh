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
         | ($shared + {name: "work-\($shared.group)", jqFilter: "\($bundle) seen | {uid, work: work}"}),
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
  local bundle uid count=0
  state::folder
  while IFS= read -r bundle; do
    ((SECONDS < 60)) || break
    uid=$(jq -r .uid <<<"$bundle")
    claim "$uid" || continue
    ((count)) || state::prepare
    ((count += 1))
    # In the background, because a failure in a condition would not end it.
    ( trap 'rm -rf -- "$STATE/claims/$uid"' EXIT; work_on "$bundle" ) &
    wait "$!" || printf 'The work on %s ended badly, and will be begun again\n' "$(jq -r '"\(.namespace)/\(.name)"' <<<"$bundle")"
  done < <(context::global::jq -c --argjson now "$(date +%s)" "$(program)
    .[$BINDING_CONTEXT_CURRENT_INDEX].snapshots | to_entries | map(select(.key | startswith(\"bundles-\")))[0].value
    // error(\"there is no snapshot of bundles\") | map(.filterResult | select(. != null)) | to_do(\$now)[]")
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

# work_on SNAPSHOT: does the work of one Bundle, whose present state is read first.
work_on() {
  local namespace name uid is
  namespace=$(jq -r .namespace <<<"$1") name=$(jq -r .name <<<"$1") uid=$(jq -r .uid <<<"$1")
  is=$(state::kubectl --namespace="$namespace" get bundles.operator.werf.dev --output=json -- "$name" 2>/dev/null |
    jq -c "$(program) seen") || return 0
  # Another Bundle of this name, or work that is done meanwhile.
  [[ $(jq -r .uid <<<"$is") == "$uid" ]] || return 0
  case $(jq -r --argjson now "$(date +%s)" "$(program) if must_wait(\$now) then \"\" else work // \"\" end" <<<"$is") in
    uninstall) uninstall "$is" ;;
    ?*) deploy "$is" ;;
  esac
}

# tell BUNDLE PROGRAM ARGUMENT...: patches the Bundle by what the program makes of it. A Bundle that is gone needs no state.
tell() {
  local change said
  change=$(jq -c --argjson now "$(date +%s)" "${@:3}" "$(program) $2" <<<"$1")
  said=$(state::kubectl --namespace="$(jq -r .namespace <<<"$1")" patch bundles.operator.werf.dev --type=merge --patch="$change" \
    -- "$(jq -r .name <<<"$1")" 2>&1) || [[ $said == *NotFound* ]] || { printf '%s\n' "$said" >&2; return 1; }
}

# report BUNDLE TYPE REASON MESSAGE: an Event. Where it cannot be written, as in a namespace that is going, the log has it.
report() {
  printf '%s: %s\n' "$(jq -r '"\(.namespace)/\(.name)"' <<<"$1")" "$4"
  jq -c --arg type "$2" --arg reason "$3" --arg message "$4" --argjson now "$(date +%s)" \
    "$(program) event(\$type; \$reason; \$message; \$now)" <<<"$1" | state::kubectl create --filename=- >/dev/null 2>&1 || true
}

# deploy BUNDLE: rolls the target out.
deploy() {
  local folder version said
  folder=$(mktemp -d "$STATE/deploy-XXXXXX")
  version=$(jq -r .target.version <<<"$1")
  if said=$(roll_out "$1" "$folder" 2>&1); then
    tell "$1" done
    report "$1" Normal Deployed "$version is deployed"
  else
    said=$(tail -c 1000 <<<"$said" | tr -s '\n' ' ')
    # shellcheck disable=SC2016 # the dollars are for jq
    tell "$1" 'failed($said; $interval; $now; $ended)' --arg said "$said" --argjson interval "$(state::setting .interval)" \
      --argjson ended "$([[ -e $folder/ended ]] && echo true || echo false)"
    report "$1" Warning DeployFailed "$version: $said"
  fi
  rm -rf -- "$folder"
}

# roll_out BUNDLE FOLDER: pulls the chart by its digest, and calls helm. What it prints is the reason if it fails.
roll_out() {
  local namespace name home account flags=() values='' status
  namespace=$(jq -r .namespace <<<"$1") name=$(jq -r .name <<<"$1") home=$(jq -r "$(program) home" <<<"$1")
  account=$(account_of "$1")
  mapfile -t flags < <(jq -r "$(program) flags" <<<"$1")
  values=$(write_values "$1" "$2" "$account") || { echo "$values"; return 1; }
  # shellcheck disable=SC2016
  tell "$1" 'begun($now; $sum)' --arg sum "$values" || return 1
  report "$1" Normal Update "$(jq -r .target.version <<<"$1") is being deployed" >/dev/null
  write_login "$1" "$2" "$account" || return 1
  state::program module pull "$(jq -r --argjson plain "$(state::setting '.plainHttp | tojson')" "$(program)
    \"\(chart(\$plain))@\(.target.digest)\"" <<<"$1")" "$2/chart" \
    --credentials "$2/login.json" "${REACH[@]}" "${KEYS[@]}" >/dev/null || return 1
  mend "$1" "$home" "$account" "$2" || return 1
  # Only a namespace that is not there is created: the account may have no right to create one.
  state::kubectl get namespace -- "$home" >/dev/null 2>&1 || flags+=(--create-namespace)
  while IFS= read -r status; do flags+=(--values "$status"); done < <(find "$2/values" -type f | sort)
  local ended=0
  helm_as "$namespace" "$account" upgrade --install --namespace="$home" --history-max=10 "${flags[@]}" \
    "--timeout=$(state::setting .timeout)s" --wait="$(state::setting .wait)" -- "$name" "$2/chart" >/dev/null || ended=$?
  # A helm that was killed leaves a pending record.
  ((ended >= 124)) || touch "$2/ended"
  return "$ended"
}

account_of() { jq -r --arg own "$(state::setting .serviceAccount)" '.spec.serviceAccount // $own' <<<"$1"; }

# helm_as NAMESPACE ACCOUNT ARGUMENT...: helm as a service account of the namespace, without the operator's environment, which could lead
# it elsewhere. It ends a little after the timeout that it knows itself.
helm_as() {
  local limit config status=0
  limit=$(($(state::setting .timeout) + 60))
  config=$(state::kubeconfig_as "$1" "$2") || return 1
  env --ignore-environment "PATH=$PATH" "HOME=${HOME-}" "ADDON_OPERATOR_RUN=${ADDON_OPERATOR_RUN-}" "KUBECONFIG=$config" GOMEMLIMIT=128MiB HELM_DRIVER=secret "HELM_CACHE_HOME=$STATE/home/cache" \
    "HELM_CONFIG_HOME=$STATE/home/config" "HELM_DATA_HOME=$STATE/home/data" \
    timeout --kill-after=20 "$limit" "${HELM_BIN:-helm}" "${@:3}" || status=$?
  ((status != 124 && status != 137)) || echo "helm was ended after $limit s" >&2
  return "$status"
}

# write_values BUNDLE FOLDER ACCOUNT: writes each key of the ConfigMap into a file, and prints the sum of the data.
write_values() {
  local namespace map said key
  mkdir "$2/values"
  namespace=$(jq -r .namespace <<<"$1") map=$(jq -r '.spec.values // ""' <<<"$1")
  [[ -n $map ]] || return 0
  said=$(state::kubectl_as "$namespace" "$3" get --output=json -- configmap "$map" 2>&1) ||
    { printf 'cannot read the values: %s' "$said"; return 1; }
  while IFS= read -r key; do
    jq -j --arg key "$key" '.data[$key]' <<<"$said" >"$2/values/$key"
  done < <(jq -r '.data // {} | keys[]' <<<"$said")
  jq -r "$(program) .data // {} | sum_of" <<<"$said"
}

# write_login BUNDLE FOLDER ACCOUNT: writes the logins for the registry.
write_login() {
  local said
  if [[ $(jq -r '.spec.auth // ""' <<<"$1") == '' ]]; then
    echo '{"auths": {}}' >"$2/login.json"
    return
  fi
  said=$(state::kubectl_as "$(jq -r .namespace <<<"$1")" "$3" get --output=json -- secret "$(jq -r .spec.auth <<<"$1")" 2>&1) ||
    { printf 'cannot read the login: %s' "$said"; return 1; }
  (umask 077; jq --arg registry "$(jq -r --argjson plain "$(state::setting '.plainHttp | tojson')" "$(program) address(\$plain)" <<<"$1")" '{auths: {($registry): {username: (.data.username | @base64d),
    password: (.data.password | @base64d)}}}' <<<"$said" >"$2/login.json")
}

# mend BUNDLE HOME ACCOUNT FOLDER: ends a call of helm that was killed. Its record would stay pending, and helm would refuse to work. Only
# a call that the state of the Bundle tells of is ended: another one may be of a person.
mend() {
  local name said record state
  name=$(jq -r .name <<<"$1")
  # No release, or no right to see it: helm will tell.
  said=$(helm_as "$(jq -r .namespace <<<"$1")" "$3" history --namespace="$2" --max=1 --output=json -- "$name" 2>/dev/null) || return 0
  state=$(jq -r '.[-1].status' <<<"$said")
  [[ $state == pending-* ]] || return 0
  if [[ $(jq -r '.rollout.unended' <<<"$1") != true ]]; then
    echo "the release is $state by another helm: wait for its end, or call 'helm rollback $name --namespace $2'"
    return 1
  fi
  record="sh.helm.release.v1.$name.v$(jq -r '.[-1].revision' <<<"$said")"
  said=$(state::kubectl_as "$(jq -r .namespace <<<"$1")" "$3" --namespace="$2" get --output=json -- secret "$record") || return 1
  # The text is changed and not parsed: a JSON parser might change numbers in it.
  said=$(jq -r .data.release <<<"$said" | base64 --decode | base64 --decode | gzip --decompress |
    sed "s/\"status\":\"$state\"/\"status\":\"failed\"/" | gzip | base64 --wrap=0)
  jq -n --arg release "$said" '{metadata: {labels: {status: "failed"}}, data: {release: ($release | @base64)}}' >"$4/record"
  state::kubectl_as "$(jq -r .namespace <<<"$1")" "$3" --namespace="$2" patch --type=merge --patch-file="$4/record" \
    -- secret "$record" >/dev/null || return 1
}

# uninstall BUNDLE: removes the release of a Bundle that is being deleted.
uninstall() {
  local said home
  home=$(jq -r "$(program) .rollout.namespace // home" <<<"$1")
  # With --ignore-not-found helm would also ignore that it may not look.
  if said=$(helm_as "$(jq -r .namespace <<<"$1")" "$(account_of "$1")" uninstall --namespace="$home" \
    "--timeout=$(state::setting .timeout)s" -- "$(jq -r .name <<<"$1")" 2>&1) || [[ $said == *": release: not found" ]]; then
    tell "$1" uninstalled
    report "$1" Normal Uninstalled "the release is uninstalled"
  else
    said=$(tail -c 1000 <<<"$said" | tr -s '\n' ' ')
    # shellcheck disable=SC2016
    tell "$1" 'failed($said; $interval; $now; false)' --arg said "$said" --argjson interval 60
    report "$1" Warning UninstallFailed "$said"
  fi
}

hook::run "$@"
