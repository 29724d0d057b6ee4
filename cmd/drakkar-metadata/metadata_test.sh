#!/bin/sh
# The reader's command: small, without shared libraries, and the same as `drakkar metadata`; the
# Python example reads the same.
set -eu
reader=$1
drakkar=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "failed: $*" >&2; exit 1; }

size=$(stat -c %s "$reader")
[ "$size" -lt 2000000 ] || fail "$reader has $size bytes"
if readelf -d "$reader" 2>/dev/null | grep -q NEEDED; then fail "$reader needs shared libraries"; fi

claim="$work/var/run/dra-device-attributes/c/gpu"
mkdir -p "$claim"
file="$claim/d.example.com-metadata.json"
cat >"$file" <<'EOF'
{"kind":"DeviceMetadata","apiVersion":"metadata.resource.k8s.io/v1beta1","metadata":{"name":"c","namespace":"ns","uid":"u","generation":2},
"requests":[{"name":"gpu","devices":[{"driver":"d.example.com","pool":"p","name":"gpu-0","attributes":{"model":{"string":"a b"},"n":{"int":5}},
"networkData":{"interfaceName":"eth0","addresses":["10.0.0.5/24"],"hwAddress":"aa:bb"}}]}]}
EOF
[ "$("$reader" c gpu --root "$work" -o 'jsonpath={.requests[0].devices[0].attributes.model.string}')" = "a b" ] ||
  fail "jsonpath"
eval "$("$reader" --file "$file" -o env)"
[ "$DRA_C_GPU_0_ATTR_MODEL/$DRA_C_GPU_0_ATTR_N/$DRA_C_GPU_0_IPS" = "a b/5/10.0.0.5/24" ] || fail "env"
"$reader" --root "$work" >"$work/all.json"
grep -q DeviceMetadataList "$work/all.json" || fail "all"
for output in json env 'jsonpath={.metadata.name}'; do
  "$reader" --file "$file" -o "$output" >"$work/one"
  "$drakkar" metadata --file "$file" -o "$output" >"$work/two"
  cmp "$work/one" "$work/two" || fail "drakkar metadata differs for $output"
done
python3 examples/read-metadata.py --root "$work" c gpu | grep -q 'model = a b' || fail "the Python example"

status=0
"$reader" nothing --root "$work" 2>/dev/null || status=$?
[ "$status" = 3 ] || fail "absent is $status, not 3"
cp "$file" "$work/written"
: >"$file"
status=0
"$reader" c gpu --root "$work" --wait 0 2>/dev/null || status=$?
[ "$status" = 3 ] || fail "empty is $status, not 3"
{ sleep 0.2; cat "$work/written" >"$file"; } &
[ "$("$reader" c gpu --root "$work" --wait 60 -o 'jsonpath={.metadata.generation}')" = 2 ] || fail "waiting"
wait
status=0
"$reader" --nonsense x 2>/dev/null || status=$?
[ "$status" = 2 ] || fail "a bad flag is $status, not 2"
echo "ok: $size bytes"
