#!/usr/bin/env bash
# The entry of the shell framework: a hook sources this file, defines its functions and ends with `hook::run "$@"`.
# Sets a strict mode in which no failure goes by unseen, and sources every *.sh file of its folder, those of subfolders and
# those that an image adds included. Needs bash 4.4 or later, find and jq.

set -Eeuo pipefail
shopt -s inherit_errexit failglob

# Tells where a command failed, the innermost call last. Standard error of a failed hook is its error text.
shell_lib::traceback() {
  local status=$? frame text
  # A handler runs in a subshell, which has told already.
  [[ ${FUNCNAME[1]-} != hook::_call ]] || return 0
  {
    printf 'Traceback, innermost call last:\n'
    for ((frame = ${#FUNCNAME[@]} - 1; frame > 0; frame--)); do
      # How the handler was found does not matter to anybody.
      [[ ${FUNCNAME[frame]} != hook::* ]] || continue
      printf '  %s:%d in %s' "${BASH_SOURCE[frame]}" "${BASH_LINENO[frame - 1]}" "${FUNCNAME[frame]}"
      if text=$(shell_lib::line "${BASH_SOURCE[frame]}" "${BASH_LINENO[frame - 1]}"); then
        printf ': %s' "$text"
      fi
      printf '\n'
    done
    printf 'The exit status was %d\n' "$status"
  } >&2
}

# shell_lib::line FILE NUMBER: that line without the blanks around it. Code that came from no file has none.
shell_lib::line() {
  local line
  [[ -f $1 && -r $1 ]] && mapfile -t -s "$(($2 - 1))" -n 1 line <"$1" && read -r line <<<"${line[0]-}" && [[ -n $line ]] || return 1
  printf '%s' "$line"
}

# The folder of this file, wherever it was linked from: in an image, /shell_lib.sh stands beside /frameworks/shell.
shell_lib::folder() {
  local file
  file=$(readlink -f -- "${BASH_SOURCE[0]}")
  if [[ -d ${file%/*}/frameworks/shell ]]; then
    printf '%s/frameworks/shell' "${file%/*}"
  else
    printf '%s' "${file%/*}"
  fi
}

trap shell_lib::traceback ERR

SHELL_LIB_FOLDER=$(shell_lib::folder)
mapfile -d '' -t SHELL_LIB_FILES \
  < <(find -L "$SHELL_LIB_FOLDER" -name '.?*' -prune -o -type f -name '*.sh' ! -name shell_lib.sh -print0 | sort -z)
# Not inside a function: what a file declares has to be global.
for SHELL_LIB_FILE in "${SHELL_LIB_FILES[@]}"; do
  # shellcheck source=/dev/null
  source "$SHELL_LIB_FILE"
done
unset SHELL_LIB_FOLDER SHELL_LIB_FILES SHELL_LIB_FILE
