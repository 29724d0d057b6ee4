#!/usr/bin/env bash
# The demo as a test: what a new user runs first must work and must show a device.
set -euo pipefail
if [ "$(id -u)" != 0 ] || ! command -v runc >/dev/null || ! command -v conmon >/dev/null; then
  echo "skipped: needs root, runc and conmon"
  exit 77
fi
output=$(tools/demo.sh "$1" 2>&1) || { printf '%s\n' "$output"; exit 1; }
printf '%s\n' "$output"
for expected in 'DRAKKAR_DEVICES=sim-' 'demo-node' 'resourceslice.resource.k8s.io/' 'Running' 'demo: done'; do
  case $output in
    *"$expected"*) ;;
    *) echo "the demo did not show: $expected"; exit 1 ;;
  esac
done
if ls -d /tmp/drakkar-demo.* >/dev/null 2>&1; then
  echo "the demo left files behind"
  exit 1
fi
if mount | grep -q drakkar-demo; then
  echo "the demo left mounts behind"
  exit 1
fi
