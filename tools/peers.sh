#!/usr/bin/env bash
# Builds programs of others that tests run against and that take long to build, once, into build/peers: releases of etcd
# newer than Debian's, containerd, Kubernetes' own servers, Helm with public DRA drivers and their charts, and Kubernetes'
# own tests (only if named). Needs Go and a module proxy. Tests that want one skip until then.
# usage: tools/peers.sh [etcd-3.5 | etcd-3.6 | kube | containerd | charts | upstream]...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$PWD/build/peers
[ $# -gt 0 ] || set -- etcd-3.5 etcd-3.6 kube containerd charts
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
    charts)
      mkdir -p "$out/charts/bin"
      for program in helm.sh/helm/v3@v3.19.0:cmd/helm \
          sigs.k8s.io/dra-example-driver@v0.2.1:cmd/dra-example-kubeletplugin \
          sigs.k8s.io/dra-example-driver@v0.2.1:cmd/dra-example-webhook; do
        # Built in a copy of its published module, so with the versions that the module itself pins.
        module=${program%%:*}
        copy=$out/charts/src/${module##*/}
        if [ ! -d "$copy" ]; then
          source=$(cd "$out" && go mod download -json "$module" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
          mkdir -p "$out/charts/src"
          cp -r --no-preserve=mode "$source" "$copy"
        fi
        (cd "$copy" && CGO_ENABLED=0 GOFLAGS= go build -ldflags '-s -w' -o "$out/charts/bin/" "./${program#*:}")
      done
      rm -rf "$out/charts/dra-example-driver"
      mkdir -p "$out/charts/dra-example-driver"
      cp -r "$out/charts/src/dra-example-driver@v0.2.1/deployments/helm/dra-example-driver" \
        "$out/charts/dra-example-driver/chart"
      cp -r "$out/charts/src/dra-example-driver@v0.2.1/demo" "$out/charts/dra-example-driver/demo"
      echo "$out/charts" ;;
    upstream)
      tests/interop/upstream/build.sh "$out"
      python3 tests/interop/upstream/dra_build.py "$out/upstream/dra.test"
      echo "$out/upstream" ;;
    *) echo "peers: unknown peer $peer; use etcd-3.5, etcd-3.6, kube, containerd, charts or upstream" >&2; exit 1 ;;
  esac
done
