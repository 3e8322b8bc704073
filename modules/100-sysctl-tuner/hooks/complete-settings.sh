#!/usr/bin/env bash
# Completes the values before the chart is rendered: the settings of the chosen profile, and the pause image that fits
# the cluster's version. Needs nothing but bash.
set -euo pipefail

if [[ ${1-} == --config ]]; then
  printf 'configVersion: v1\nbeforeHelm: 10\ndryRun: true\n'
  exit 0
fi

values=$(<"$VALUES_PATH")

# text_of SECTION KEY: prints the text of the first key with this name after the section's name; nothing if there is none.
text_of() {
  local section=${values#*\"$1\"} pattern="\"$2\"[[:space:]]*:[[:space:]]*\"([^\"]*)\""
  if [[ $section =~ $pattern ]]; then
    printf '%s' "${BASH_REMATCH[1]}"
  fi
}

profile=$(text_of sysctlTuner profile)
case $profile in
  none | '')
    preset='{}'
    ;;
  web)
    preset='{"net.core.somaxconn": "4096", "net.ipv4.tcp_max_syn_backlog": "4096", "net.ipv4.ip_local_port_range": "10240 65000"}'
    ;;
  database)
    preset='{"vm.swappiness": "1", "vm.dirty_background_ratio": "3", "vm.dirty_ratio": "10", "fs.aio-max-nr": "1048576"}'
    ;;
  search)
    preset='{"vm.max_map_count": "262144", "vm.swappiness": "1", "net.ipv4.tcp_retries2": "5"}'
    ;;
  *)
    echo "unknown profile '$profile' in sysctlTuner.profile: there are none, web, database and search" >&2
    exit 1
    ;;
esac

# Each minor version of the kubelet uses another pause image. Using the same one saves a download per node.
pause=''
minor=$(text_of cluster minor)
if [[ $minor =~ ^[0-9]+ ]]; then
  minor=${BASH_REMATCH[0]}
  if ((minor >= 34)); then
    pause=registry.k8s.io/pause:3.10.1
  elif ((minor >= 31)); then
    pause=registry.k8s.io/pause:3.10
  else
    pause=registry.k8s.io/pause:3.9
  fi
fi

printf '[{"op": "add", "path": "/sysctlTuner/derived", "value": {"preset": %s, "pauseImage": "%s"}}]\n' \
  "$preset" "$pause" >"$VALUES_JSON_PATCH_PATH"
