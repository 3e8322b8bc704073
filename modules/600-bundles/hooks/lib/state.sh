# Shared by poll.sh, deploy.sh and look.sh: the folder with notes of this life of the operator, settings, and other programs. The notes are times
# and claims; whatever must outlive the operator is in the status of the Bundles. A start of jq costs more than its work, so values are
# read once.
# shellcheck shell=bash disable=SC2034 # the hooks read STATE, SETTINGS and REACH

# state::folder: makes the folder.
state::folder() {
  STATE=$(dirname "$VALUES_PATH")/bundles-state
  mkdir -p "$STATE/claims" "$STATE/home"
}

# state::prepare: reads the settings, and sets the flags by which `addon-operator` reaches registries and checks signatures.
state::prepare() {
  local host
  state::settings
  # Any person who may create a Bundle chooses the registry.
  REACH=(--only-outside)
  while IFS= read -r host; do
    [[ -z $host ]] || REACH+=(--near "$host")
  done <<<"${SETTINGS[nearRegistries[]]}"
  while IFS= read -r host; do
    [[ -n $host ]] || continue
    REACH+=(--plain-http "$host")
    # A host of one word is asked with its port.
    [[ $host == *:* ]] || REACH+=(--plain-http "$host:80")
  done <<<"${SETTINGS[plainHttp[]]}"
  if [[ -n ${SETTINGS[authority]} ]]; then
    state::file authority
    REACH+=(--authority "$STATE/authority")
  fi
  KEYS=()
  if [[ -n ${SETTINGS[keys]} ]]; then
    state::file keys
    KEYS=(--keys "$STATE/keys")
  fi
}

# state::settings: reads the module's values into SETTINGS, lists as JSON, and in `NAME[]` with an item a line.
state::settings() {
  local values index
  mapfile -d '' -t values < <(jq -j '.bundles | to_entries[]
    | (if .value | type == "array" then {key: "\(.key)[]", value: (.value | join("\n"))} else empty end), .
    | .key + "\u0000", (.value | tostring) + "\u0000"' "$VALUES_PATH")
  # A file that cannot be read is a failure.
  wait "$!"
  declare -gA SETTINGS=()
  for ((index = 0; index < ${#values[@]}; index += 2)); do
    SETTINGS[${values[index]}]=${values[index + 1]}
  done
}

# state::file NAME: writes the setting of this name into a file, at once, because other hooks read it.
state::file() {
  local new
  new=$(mktemp "$STATE/$1-XXXXXX")
  printf '%s\n' "${SETTINGS[$1]}" >"$new"
  mv -f "$new" "$STATE/$1"
}

# state::times KIND: prints the times of the next questions, or of the next looks, by uid.
state::times() { cat "$STATE/$1" 2>/dev/null || true; }

# state::keep_times KIND: adds the times on standard input, one "UID TIME" a line.
state::keep_times() {
  local new
  new=$(mktemp "$STATE/$1-XXXXXX")
  jq -cnR --slurpfile old <(state::times "$1") --argjson now "$(date +%s)" '
    ($old | add // {} | with_entries(select(.value > $now - 86400)))
    + ([inputs | split(" ") | {(.[0]): (.[1] | tonumber)}] | add // {})' >"$new"
  mv -f "$new" "$STATE/$1"
}

# state::program ARGUMENT...: this operator's own program.
state::program() { "${ADDON_OPERATOR_PROGRAM:-addon-operator}" "$@"; }

# state::kubectl ARGUMENT...: kubectl with the rights of the operator.
state::kubectl() { kubectl --request-timeout=20s "$@"; }

# state::kubectl_as NAMESPACE ACCOUNT ARGUMENT...: kubectl as a service account of the namespace, in that namespace.
state::kubectl_as() {
  local config
  config=$(state::kubeconfig_as "$1" "$2") || return 1
  KUBECONFIG=$config kubectl --request-timeout=20s --namespace="$1" "${@:3}"
}

# state::kubeconfig_as NAMESPACE ACCOUNT: prints the path of a kubeconfig that acts as the account. The flags for that would be
# ignored inside of a cluster, where programs without a kubeconfig use the operator's own account.
state::kubeconfig_as() {
  local file=$STATE/accounts/$1.$2 new
  new=$(umask 077 && mkdir -p "$STATE/accounts" && mktemp "$STATE/accounts/new-XXXXXX") || return 1
  state::kubeconfig | jq --arg user "system:serviceaccount:$1:$2" '
    if .users | length == 1 then .users[0].user.as = $user else error("the kubeconfig names no user") end' >"$new" || return 1
  mv -f "$new" "$file"
  printf '%s' "$file"
}

# state::helm_as NAMESPACE ACCOUNT SECONDS ARGUMENT...: helm as a service account of the namespace, without the operator's
# environment, which could lead it elsewhere. It is ended after the time.
state::helm_as() {
  local config status=0
  config=$(state::kubeconfig_as "$1" "$2") || return 1
  env --ignore-environment "PATH=$PATH" "HOME=${HOME-}" "ADDON_OPERATOR_RUN=${ADDON_OPERATOR_RUN-}" "KUBECONFIG=$config" GOMEMLIMIT=128MiB HELM_DRIVER=secret "HELM_CACHE_HOME=$STATE/home/cache" \
    "HELM_CONFIG_HOME=$STATE/home/config" "HELM_DATA_HOME=$STATE/home/data" \
    timeout --kill-after=20 "$3" "${HELM_BIN:-helm}" "${@:4}" || status=$?
  ((status != 124 && status != 137)) || echo "helm was ended after $3 s" >&2
  return "$status"
}

# state::kubeconfig: prints the kubeconfig of this operator.
state::kubeconfig() {
  local account=/var/run/secrets/kubernetes.io/serviceaccount
  if [[ -n ${KUBECONFIG-} || -f ${HOME-}/.kube/config ]]; then
    kubectl config view --raw --minify --flatten --output=json
  else
    jq -n --arg server "https://${KUBERNETES_SERVICE_HOST-}:${KUBERNETES_SERVICE_PORT-}" --arg account "$account" '
      {apiVersion: "v1", kind: "Config", "current-context": "own", contexts: [{name: "own", context: {cluster: "own", user: "own"}}],
       clusters: [{name: "own", cluster: {server: $server, "certificate-authority": "\($account)/ca.crt"}}],
       users: [{name: "own", user: {tokenFile: "\($account)/token"}}]}'
  fi
}
