#!/usr/bin/env bash
# package_test.sh CMAKE BUILD COMPILER [FLAGS]: installs the build into a temporary prefix, moves
# that (a package may not hold the path it was made with), and builds and runs the examples with it,
# which are those that docs/FORMATS.md shows; consumer.cc stands in include/fourpiles/formats.h too.
set -euo pipefail
cmake=$1 build=$2 compiler=$3 flags=${4:-}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

root=$here/../..
sed -n '/^\/\/   #include/,/^\/\/   }/{s/^\/\/ \{0,3\}//;p}' "$root/include/fourpiles/formats.h" |
  diff - "$here/consumer.cc"
sed -n '/^```cpp$/,/^```$/{/^```/d;p}' "$root/docs/FORMATS.md" |
  diff - <(cat "$here"/{consumer,blocks,arithmetic}.cc)

"$cmake" --install "$build" --prefix "$work/made" >/dev/null
# ./run has to build all of it, or installing after it fails: its target makes every library here.
made_by_run=$(ninja -C "$build" -t query "$(sed -n 's/^build release \([a-z]*\).*/\1/p' "$root/run")")
for library in $(find "$work/made" -name '*.a'); do
  grep -qF "/$(basename "$library")" <<<"$made_by_run" || { echo "./run leaves out $library"; exit 1; }
done

mv "$work/made" "$work/installed"
"$cmake" -G Ninja -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/installed" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" >"$work/log" || { cat "$work/log"; exit 1; }
"$cmake" --build "$work/build"

# prints PROGRAM: what it prints is stdin.
prints() { diff <("$work/build/$1") -; }
# 0.1 becomes 0.1015625, 1e-4 zero, 500 NaN: 10 log10 (9.01 ÷ (0.0015625² + 1e-8)).
prints consumer <<<"1 of 4 underflow, signal to noise 65.6531 dB"
# Scales 2^0 (7.5 saturates, 0.75 is a tie) and 2^-3, of which 0.75 is 6.
prints blocks <<'END'
32 + 2 bytes; 1, 6; 0.75
-1.5, 448
END
# bfloat16 has steps of 2 past 256. 448 + 4095 ÷ 64 = 511.984; beside 448 the tensor core cuts off
# behind 1 ÷ 32, so that only the 31 groups of 128 ÷ 64 behind the first arrive, where they are
# promoted; float16 has steps of 1 ÷ 4 there.
prints arithmetic <<'END'
1000 ones in bfloat16: 256, in halves 1000
float32: 511.984
hopper-fp8: 448
hopper-fp8-promoted: 510
own: 448
END
"$work/installed/bin/fourpiles" --version
test -s "$work/installed/share/doc/fourpiles/LICENSE"
