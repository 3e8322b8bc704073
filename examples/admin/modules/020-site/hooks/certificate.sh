#!/usr/bin/env bash
# Stands for a hook whose other side is out of reach.
if [[ "$1" == "--config" ]]; then
  echo 'configVersion: v1'
  echo 'beforeHelm: 10'
  exit 0
fi
echo "the certificate authority at ca.example.com does not answer" >&2
exit 1
