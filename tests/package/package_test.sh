#!/usr/bin/env bash
# package_test.sh CMAKE BUILD COMPILER [FLAGS]: installs the build into a temporary prefix, moves
# that (a package may not hold the path it was made with), and builds and runs consumer.cc with it,
# which is the example that include/fourpiles/formats.h and docs/FORMATS.md show.
set -euo pipefail
cmake=$1 build=$2 compiler=$3 flags=${4:-}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

root=$here/../..
sed -n '/^\/\/   #include/,/^\/\/   }/{s/^\/\/ \{0,3\}//;p}' "$root/include/fourpiles/formats.h" |
  diff - "$here/consumer.cc"
sed -n '/^```cpp$/,/^```$/{/^```/d;p}' "$root/docs/FORMATS.md" | diff - "$here/consumer.cc"

"$cmake" --install "$build" --prefix "$work/made" >/dev/null
mv "$work/made" "$work/installed"
"$cmake" -G Ninja -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/installed" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" >"$work/log" || { cat "$work/log"; exit 1; }
"$cmake" --build "$work/build"
# 0.1 becomes 0.1015625, 1e-4 zero, 500 NaN: 10 log10 (9.01 ÷ (0.0015625² + 1e-8)).
"$work/build/consumer" | diff - <(echo "1 of 4 underflow, signal to noise 65.6531 dB")
"$work/installed/bin/fourpiles" --version
test -s "$work/installed/share/doc/fourpiles/LICENSE"
