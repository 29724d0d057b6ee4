#!/bin/sh
# Builds the programs that Kubernetes' own tests consist of, as they are published, into OUT/upstream: e2e.test, kubectl,
# agnhost and the other programs in the images that the tests use. Needs Go and a module proxy, and 10 to 40 minutes of CPU
# the first time.
# usage: tests/interop/upstream/build.sh [OUT [PROGRAM...]]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(mkdir -p "${1:-build/peers}/upstream" && cd "${1:-build/peers}/upstream" && pwd)
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- agnhost hostpathplugin nonewprivs regression-issue-74839 sample-device-plugin sample-apiserver kubectl e2e.test
cd "$here"
release=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${release#v1.}
v=k8s.io/component-base/version
flags="-s -w -X $v.gitVersion=$release -X $v.gitMajor=1 -X $v.gitMinor=${minor%%.*} -X $v.gitTreeState=clean"
export CGO_ENABLED=0 GOFLAGS=
for program; do
  case $program in
    agnhost | nonewprivs | regression-issue-74839 | sample-device-plugin) package=k8s.io/kubernetes/test/images/$program ;;
    sample-apiserver) package=k8s.io/sample-apiserver ;;
    kubectl) package=k8s.io/kubernetes/cmd/kubectl ;;
    hostpathplugin) package=./hostpathplugin ;;
    e2e.test) package=k8s.io/kubernetes/test/e2e ;;
    *) echo "build.sh: unknown program $program" >&2; exit 1 ;;
  esac
  build=build
  [ "$program" = e2e.test ] && build='test -c -vet=off'
  # shellcheck disable=SC2086
  go $build -p 1 -mod=readonly -ldflags "$flags" -o "$out/$program" "$package"
  echo "$out/$program $release"
done
