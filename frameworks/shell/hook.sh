#!/usr/bin/env bash
# Runs a hook that is written as functions: finds the function for each binding context.

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
# BINDING_CONTEXT_CURRENT_BINDING identify it. The first failure ends the hook.
hook::run() {
  if [[ ${1-} == --config ]]; then
    __config__
    exit 0
  fi

  local contexts index
  # Two texts for each context: the binding, and the possible function names, one a line.
  mapfile -d '' -t contexts < <(context::global::jq -j "$HOOK_HANDLERS")
  # An unreadable file is a failure, not a run without contexts.
  wait "$!"
  for ((index = 0; index < ${#contexts[@]} / 2; index++)); do
    export BINDING_CONTEXT_CURRENT_INDEX=$index
    export BINDING_CONTEXT_CURRENT_BINDING=${contexts[index * 2]}
    hook::_dispatch "${contexts[index * 2 + 1]}"
  done
}

# Turns the list of contexts into texts that end with NUL. Without regular expressions, because not every jq has them.
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

# hook::_dispatch NAMES: calls the first of these functions that exists; the last name is __main__.
hook::_dispatch() {
  local names name
  mapfile -t names <<<"$1"
  names+=(__main__)
  for name in "${names[@]}"; do
    # A function's name has no blanks. For a binding whose name has blanks, only the first word is used.
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

# Runs in a subshell, so that variables set for one context are gone for the next. Must never be part of a condition: bash
# would not stop at a failure inside.
hook::_call() {
  ("$1")
}
