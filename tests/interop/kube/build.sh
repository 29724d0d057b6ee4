#!/bin/sh
# Builds kube-apiserver, kube-scheduler, kube-controller-manager and kubelet as they are published, from the Go
# modules that go.mod pins, into BINARY_DIR/interop/kube. Needs Go and a module proxy, some 4 GB for Go's cache, and
# 10 to 20 minutes of CPU the first time: too much for every run, so the tests that use them skip without them.
# usage: tests/interop/kube/build.sh [BINARY_DIR [PROGRAM...]]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(mkdir -p "${1:-build/dev}/interop/kube" && cd "${1:-build/dev}/interop/kube" && pwd)
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- kube-scheduler kube-apiserver kubelet kube-controller-manager
cd "$here"
release=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${release#v1.}
# Version data as in release builds: feature gates and the version that a node reports depend on it.
v=k8s.io/component-base/version
flags="-s -w -X $v.gitVersion=$release -X $v.gitMajor=1 -X $v.gitMinor=${minor%%.*} -X $v.gitTreeState=clean"
for program; do
  CGO_ENABLED=0 go build -p 1 -mod=readonly -ldflags "$flags" -o "$out/$program" "k8s.io/kubernetes/cmd/$program"
  echo "$out/$program $release"
done
