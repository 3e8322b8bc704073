#!/usr/bin/env bash
echo "configVersion: v1"
echo "beforeHelm: soon"
