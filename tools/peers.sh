#!/usr/bin/env bash
# Builds programs of others that tests run against and that take long to build, once, into build/peers: releases of etcd
# newer than Debian's, containerd, and Kubernetes' own servers. Needs Go and a module proxy. Tests that want one skip until then.
# usage: tools/peers.sh [etcd-3.5 | etcd-3.6 | kube | containerd]...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$PWD/build/peers
[ $# -gt 0 ] || set -- etcd-3.5 etcd-3.6 kube
command -v go >/dev/null || { echo "peers: go not found in PATH; install Go 1.26 or newer" >&2; exit 1; }
for peer; do
  case $peer in
    etcd-3.5 | etcd-3.6)
      [ -x "$out/$peer/etcd" ] && { echo "$out/$peer/etcd is built"; continue; }
      mkdir -p "$out/$peer"
      (cd "tests/interop/$peer" && CGO_ENABLED=0 GOFLAGS= go build -mod=readonly -ldflags '-s -w' -o "$out/$peer/etcd" .)
      echo "$out/$peer/etcd" ;;
    kube)
      for program in kube-apiserver kube-scheduler kube-controller-manager kubelet; do
        [ -x "$out/interop/kube/$program" ] && { echo "$out/interop/kube/$program is built"; continue; }
        tests/interop/kube/build.sh "$out" "$program"
      done ;;
    containerd)
      [ -x "$out/containerd/ctr" ] && { echo "$out/containerd is built"; continue; }
      mkdir -p "$out/containerd"
      for program in containerd containerd-shim-runc-v2 ctr; do
        (cd tests/interop/containerd && CGO_ENABLED=0 GOFLAGS= go build -mod=readonly -ldflags '-s -w' \
          -tags 'no_btrfs no_aufs no_zfs no_devmapper' -o "$out/containerd/$program" "github.com/containerd/containerd/v2/cmd/$program")
      done
      echo "$out/containerd" ;;
    *) echo "peers: unknown peer $peer; use etcd-3.5, etcd-3.6, kube or containerd" >&2; exit 1 ;;
  esac
done
