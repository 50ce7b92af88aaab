#!/usr/bin/env bash
# package_test.sh CMAKE BUILD COMPILER [FLAGS]: installs the build into a temporary prefix, moves
# that (a package may not hold the path it was made with), and builds and runs consumer.cc with it.
set -euo pipefail
cmake=$1 build=$2 compiler=$3 flags=${4:-}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/made" >/dev/null
mv "$work/made" "$work/installed"
"$cmake" -G Ninja -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/installed" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" >"$work/log" || { cat "$work/log"; exit 1; }
"$cmake" --build "$work/build"
"$work/build/consumer"
"$work/installed/bin/fourpiles" --version
test -s "$work/installed/share/doc/fourpiles/LICENSE"
