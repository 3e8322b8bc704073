#!/usr/bin/env bash
# The entry of the shell framework: a hook sources this file, defines its functions and ends with `hook::run "$@"`.
# Sets a strict mode in which every failure ends the hook, and sources every *.sh file below its folder, including those that
# an image adds. Needs bash 4.4 or later, find and jq.

set -Eeuo pipefail
shopt -s inherit_errexit failglob

# Prints where a command failed, the innermost call last. Standard error of a failed hook is its error text.
shell_lib::traceback() {
  local status=$? frame text
  # A handler runs in a subshell, which has already printed the place.
  [[ ${FUNCNAME[1]-} != hook::_call ]] || return 0
  {
    printf 'Traceback, innermost call last:\n'
    for ((frame = ${#FUNCNAME[@]} - 1; frame > 0; frame--)); do
      # The calls that find the handler are of no interest.
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

# shell_lib::line FILE NUMBER: prints the line without surrounding blanks; nothing for code that is in no file.
shell_lib::line() {
  local line
  [[ -f $1 && -r $1 ]] && mapfile -t -s "$(($2 - 1))" -n 1 line <"$1" && read -r line <<<"${line[0]-}" && [[ -n $line ]] || return 1
  printf '%s' "$line"
}

# The folder of this file with links resolved: in an image, /shell_lib.sh is a link to a file in /frameworks/shell.
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
# Not inside a function, because declarations in the files have to be global.
for SHELL_LIB_FILE in "${SHELL_LIB_FILES[@]}"; do
  # shellcheck source=/dev/null
  source "$SHELL_LIB_FILE"
done
unset SHELL_LIB_FOLDER SHELL_LIB_FILES SHELL_LIB_FILE
