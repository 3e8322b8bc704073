#!/usr/bin/env bash
# A hook of a module named `database`: makes up a password once, and keeps it in the ConfigMap.
source "${FRAMEWORK_DIR:-}/shell_lib.sh"

__config__() {
  cat <<'YAML'
configVersion: v1
beforeHelm: 10
YAML
}

__main__() {
  local password
  if jq -e '.database.password' "$CONFIG_VALUES_PATH" >/dev/null; then
    return
  fi
  password=$(openssl rand -hex 16)
  # shellcheck disable=SC2016 # the dollar is for jq
  jq -n --arg password "$password" \
    '[{op: "add", path: "/database/password", value: $password}]' >"$CONFIG_VALUES_JSON_PATCH_PATH"
}

hook::run "$@"
