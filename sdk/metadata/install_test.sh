#!/bin/sh
# What is installed is enough: a C and a C++ program are built from it alone, and run.
set -eu
build=$1
cmake=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cmake" --install "$build" --component metadata --prefix "$work/root" >/dev/null
library=$(find "$work/root" -name libdrakkar_metadata.a)

cat >"$work/a.c" <<'EOF'
#include <drakkar_metadata.h>
#include <stdio.h>
int main(void) {
  drakkar_metadata* metadata;
  char* error;
  if (drakkar_metadata_read("no-such-claim", "gpu", 0, &metadata, &error) != DRAKKAR_METADATA_NOT_YET) return 1;
  puts(error);
  drakkar_metadata_free_text(error);
  return 0;
}
EOF
cat >"$work/b.cc" <<'EOF'
#include <cstdio>

#include "sdk/metadata/reader.h"
int main() {
  const auto all = drakkar::metadata::Reader().ReadAll();
  std::puts(all.ok() ? "ok" : all.error().message.c_str());
  return 0;
}
EOF
${CC:-cc} -Wall -Werror -I"$work/root/include" -c "$work/a.c" -o "$work/a.o"
${CXX:-c++} "$work/a.o" "$library" -o "$work/a"
${CXX:-c++} -std=c++20 -Wall -Werror -I"$work/root/include/drakkar" "$work/b.cc" "$library" -o "$work/b"
"$work/a"
"$work/b"
