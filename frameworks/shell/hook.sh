#!/usr/bin/env bash
# Runs a hook that is written as functions: finds for each binding context the function that is meant for it.

# hook::run "$@": with --config prints what `__config__` prints. Otherwise calls, for one context after the other and each in
# a subshell, the first of these functions that is defined:
#
#   onStartup        __on_startup
#   Synchronization  __on_kubernetes::BINDING::synchronization, __on_kubernetes::BINDING
#   Added            __on_kubernetes::BINDING::added, …::added_or_modified, __on_kubernetes::BINDING
#   Modified         __on_kubernetes::BINDING::modified, …::added_or_modified, __on_kubernetes::BINDING
#   Deleted          __on_kubernetes::BINDING::deleted, __on_kubernetes::BINDING
#   Group            __on_group::GROUP, __on_group::BINDING
#   Schedule         __on_schedule::BINDING
#   Validating       __on_validating::BINDING
#   Mutating         __on_mutating::BINDING
#   Conversion       __on_conversion::BINDING::FROM::TO with dots for slashes, __on_conversion::BINDING
#   everything       __main__
#
# The function finds its context with context::jq and the like; BINDING_CONTEXT_CURRENT_INDEX and
# BINDING_CONTEXT_CURRENT_BINDING say which one it is. The first failure ends the hook.
hook::run() {
  if [[ ${1-} == --config ]]; then
    __config__
    exit 0
  fi

  local contexts index
  # Two texts a context: the binding, and the names to look for, one a line.
  mapfile -d '' -t contexts < <(context::global::jq -j "$HOOK_HANDLERS")
  # A file that cannot be read is a failure, not a run without contexts.
  wait "$!"
  for ((index = 0; index < ${#contexts[@]} / 2; index++)); do
    export BINDING_CONTEXT_CURRENT_INDEX=$index
    export BINDING_CONTEXT_CURRENT_BINDING=${contexts[index * 2]}
    hook::_dispatch "${contexts[index * 2 + 1]}"
  done
}

# From the list of contexts to texts that end with a NUL. Without regular expressions: not every jq has them.
# shellcheck disable=SC2016 # the dollars are for jq
HOOK_HANDLERS='
  def binding: .binding // "unknown";
  def on($kind): "__on_" + $kind + "::" + binding;
  def watched($name): on("kubernetes") + "::" + $name;
  def dotted: tostring | split("/") | join(".");
  def names:
    if binding == "onStartup" then "__on_startup"
    elif .type == "Synchronization" then watched("synchronization"), on("kubernetes")
    elif .type == "Event" then
      watched({Added: ["added", "added_or_modified"], Modified: ["modified", "added_or_modified"], Deleted: ["deleted"]}
              [.watchEvent | tostring] // [] | .[]),
      on("kubernetes")
    elif .type == "Group" then (.groupName | strings | "__on_group::" + .), on("group")
    elif .type == "Schedule" then on("schedule")
    elif .type == "Validating" then on("validating")
    elif .type == "Mutating" then on("mutating")
    elif .type == "Conversion" then
      on("conversion") + "::" + (.fromVersion | dotted) + "::" + (.toVersion | dotted), on("conversion")
    else empty end;
  .[] | binding + "\u0000", ([names | split("\n")[0]] | join("\n")) + "\u0000"'

# hook::_dispatch NAMES: calls the first function of that name, the last resort being __main__.
hook::_dispatch() {
  local names name
  mapfile -t names <<<"$1"
  names+=(__main__)
  for name in "${names[@]}"; do
    # No function has a blank in its name. Of a binding whose name has some, the first word decides.
    name=${name%%[[:space:]]*}
    if [[ -n $name ]] && declare -F -- "$name" >/dev/null; then
      hook::_call "$name"
      return
    fi
  done
  printf 'ERROR: the hook has none of the functions for this binding context:' >&2
  printf ' %s' "${names[@]}" >&2
  printf '\n' >&2
  exit 1
}

# In a subshell, so that what one context sets is gone for the next. Never part of a condition: bash would not stop at a
# failure inside.
hook::_call() {
  ("$1")
}
