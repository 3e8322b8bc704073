#!/usr/bin/env bash
# Plays a hook whose server cannot be reached.
if [[ "$1" == "--config" ]]; then
  echo 'configVersion: v1'
  echo 'beforeHelm: 10'
  exit 0
fi
echo "the certificate authority at ca.example.com does not answer" >&2
exit 1
