#!/usr/bin/env bash
# Runs a pod with a device, end to end, in a new data directory: starts `drakkar up`, applies
# examples/hello-device, waits until the pod runs, shows the result, and leaves nothing behind.
# `./dev demo` calls it with the binary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

drakkar=$(realpath "$1")
work=$(mktemp -d /tmp/drakkar-demo.XXXXXX)
up_pid=
watch_pid=

say() { printf '%s\n' "demo: $*"; }

cleanup() {
  local status=$?
  [ -z "$watch_pid" ] || kill "$watch_pid" 2>/dev/null || true
  if [ -n "$up_pid" ] && kill -0 "$up_pid" 2>/dev/null; then
    say "stopping"
    kill -TERM "$up_pid"
    for _ in $(seq 1 150); do
      kill -0 "$up_pid" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "$up_pid" 2>/dev/null || true
    wait "$up_pid" 2>/dev/null || true
  fi
  if [ $status -ne 0 ]; then
    say "failed; the last lines of the log:"
    tail -n 40 "$work/up.log" 2>/dev/null || true
  fi
  # The network of the node's pods, and the pod itself if the demo failed.
  "$drakkar" down --data-dir "$work/data" >/dev/null 2>&1 || true
  rm -rf "$work"
  exit $status
}
trap cleanup EXIT

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

say "creating an image from Debian's busybox"
tools/make_busybox_rootfs.sh "$work/busybox.tar.gz"
"$drakkar" image import --data-dir "$work/data" --name localhost/busybox:latest "$work/busybox.tar.gz"

say "starting drakkar up"
"$drakkar" up --data-dir "$work/data" --port "$(free_port)" --node-port "$(free_port)" \
  --node-name demo-node --devices examples/devices.yaml >"$work/up.log" 2>&1 &
up_pid=$!
export KUBECONFIG="$work/data/admin.kubeconfig"
begun=$SECONDS
until [ -f "$KUBECONFIG" ] && [ -n "$("$drakkar" get resourceslices -o name 2>/dev/null)" ]; do
  kill -0 "$up_pid" 2>/dev/null || { say "drakkar up has exited"; exit 1; }
  [ $((SECONDS - begun)) -lt 60 ] || { say "not ready after a minute"; exit 1; }
  sleep 0.1
done

"$drakkar" get resourceclaims --watch >"$work/claims.log" 2>&1 &
watch_pid=$!

say "applying examples/hello-device"
"$drakkar" apply -f examples/hello-device/
say "waiting until the pod is ready"
"$drakkar" wait --for=condition=Ready --timeout=60s pod/hello-device

printf '\n--- the container'"'"'s log\n'
"$drakkar" logs hello-device
printf '\n--- the cluster\n'
"$drakkar" get nodes,resourceslices,resourceclaims,pods
printf '\n'

say "deleting the pod, which deletes its claim and frees the device"
"$drakkar" delete pod hello-device
begun=$SECONDS
until [ -z "$("$drakkar" get resourceclaims -o name)" ]; do
  [ $((SECONDS - begun)) -lt 30 ] || { say "the claim still exists"; exit 1; }
  sleep 0.1
done
printf '\n--- how the claim changed\n'
cat "$work/claims.log"
printf '\n'
grep -q allocated,reserved "$work/claims.log" || { say "the claim was never seen allocated and reserved"; exit 1; }
say "done"
