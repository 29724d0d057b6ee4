#!/bin/sh
# The installed features library serves a C program: headers, archives and pkg-config file are enough.
# usage: install_test.sh BUILD_DIRECTORY SOURCE_OF_THE_PROGRAM
set -eu
build=$1
program=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/usr" --component features >/dev/null
export PKG_CONFIG_PATH="$work/usr/lib/pkgconfig"
cc -std=c99 -Wall -Wextra -Werror -o "$work/program" "$program" \
  $(pkg-config --define-prefix --cflags --libs drakkar-features)
"$work/program"
# C++ users find the framework under the same name.
cat >"$work/user.cc" <<'CC'
#include <drakkar/features/catalog/catalog.h>
int main() { return drakkar::features::DefaultFramework().registry().size() > 5 ? 0 : 1; }
CC
c++ -std=c++20 -o "$work/user" "$work/user.cc" \
  $(pkg-config --define-prefix --cflags --libs drakkar-features)
"$work/user"
echo "ok: a C and a C++ program use the installed library"
