#!/usr/bin/env bash
# Functions that read binding contexts. PATH is keys separated by dots: `object.metadata.name`, `snapshots.pods.0`.
# A key that itself has dots is quoted: `object.metadata.labels."app.kubernetes.io/name"`. Any jq expression that may follow
# a dot works as well: `objects[0].object`, `snapshots.pods | length`.

# context::global::jq ARGUMENT...: jq on the list of all contexts of this run.
context::global::jq() {
  jq "$@" "$BINDING_CONTEXT_PATH"
}

# context::jq ARGUMENT...: jq on the current context.
context::jq() {
  # A mistake in the filter is reported once, by the jq after the pipe.
  { trap - ERR; context::global::jq ".[$BINDING_CONTEXT_CURRENT_INDEX]"; } | jq "$@"
}

# context::get [--required] PATH: prints a value, texts without quotes. An absent value is printed as `null`; with --required
# it is an error.
context::get() {
  local required='' filter
  while [[ ${1-} == --required ]]; do
    required=yes
    shift
  done
  if [[ -n $required ]] && ! context::has "${1-}"; then
    printf "ERROR: the binding context has no '%s', which is required\n" "${1-}" >&2
    return 1
  fi
  filter=$(context::_filter "${1-}")
  context::jq -r "$filter"
}

# context::has PATH: does the key exist, even with the value null?
context::has() {
  local keys key filter
  context::_split "${1-}"
  ((${#keys[@]} > 0)) || return 0
  key=${keys[-1]}
  unset 'keys[-1]'
  [[ $key =~ ^[0-9]+$ ]] || key=$(context::_text "$(context::_bare "$key")")
  filter=$(context::_join "${keys[@]+"${keys[@]}"}")
  context::jq -e "try ($filter | has($key)) catch false" >/dev/null
}

# context::is_true PATH, context::is_false PATH, context::is_null PATH: is the value exactly that? An absent value is null.
context::is_true() {
  context::_equals "${1-}" true
}

context::is_false() {
  context::_equals "${1-}" false
}

context::is_null() {
  context::_equals "${1-}" null
}

context::_equals() {
  local filter
  filter=$(context::_filter "$1")
  context::jq -e "($filter) == $2" >/dev/null
}

# context::_filter PATH: prints the jq filter for it.
context::_filter() {
  local keys
  context::_split "$1"
  context::_join "${keys[@]+"${keys[@]}"}"
}

# context::_split PATH: splits the path into `keys`, at the dots outside of quotes. Quotes are kept.
context::_split() {
  local rest=${1#.} key='' piece
  keys=()
  while [[ -n $rest ]]; do
    case $rest in
      .*)
        keys+=("$key")
        key=''
        rest=${rest#.}
        continue
        ;;
      \"*\"* | \'*\'*)
        piece=${rest:1}
        piece=${rest:0:1}${piece%%"${rest:0:1}"*}${rest:0:1}
        ;;
      [\"\']*) piece=${rest:0:1} ;;
      *) piece=${rest%%[.\"\']*} ;;
    esac
    key+=$piece
    rest=${rest:${#piece}}
  done
  [[ -z $key ]] || keys+=("$key")
}

# context::_join KEY...: prints the jq filter that follows the keys. A word that is neither a name nor other syntax of jq is
# taken for a key: `dash-ed`.
context::_join() {
  local key filter=. name='^[A-Za-z_][A-Za-z0-9_]*$' language='[][()|,;?=[:space:]"'\'']'
  for key in "$@"; do
    if [[ $key =~ ^[0-9]+$ ]]; then
      filter+="[$key]"
    elif context::_is_quoted "$key" || [[ ! $key =~ $name && ! $key =~ $language ]]; then
      filter+="[$(context::_text "$(context::_bare "$key")")]"
    else
      [[ $filter == . ]] || filter+=.
      filter+=${key//\'/\"}
    fi
  done
  printf '%s' "$filter"
}

# context::_is_quoted KEY: is the whole key in quotes?
context::_is_quoted() {
  [[ $1 =~ ^\"[^\"]*\"$ || $1 =~ ^\'[^\']*\'$ ]]
}

# context::_bare KEY: prints the key without its quotes.
context::_bare() {
  if context::_is_quoted "$1"; then
    printf '%s' "${1:1:${#1}-2}"
  else
    printf '%s' "$1"
  fi
}

# context::_text WORD: prints the word as a jq string.
context::_text() {
  local word=${1//\\/\\\\}
  printf '"%s"' "${word//\"/\\\"}"
}
