#!/usr/bin/env bash
# A version that is bad has another hook in this place.
if [[ ${1:-} == --config ]]; then
  echo '{"configVersion": "v1", "afterHelm": 1}'
fi
