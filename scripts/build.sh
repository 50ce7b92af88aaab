# Shell functions for ./run, ./test and .ci/run: what a build needs, and the build. They speak on
# stderr only, ask nothing, and end the caller with status 4 (the program's own "our fault") when
# something fails. The caller's stdin is left for the program. To be sourced.

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Debian 12 package names.
build_packages=(g++ cmake ninja-build libfmt-dev libexpected-dev libcli11-dev libsimdjson-dev
  nlohmann-json3-dev libhwy-dev zlib1g-dev)
test_packages=(libgtest-dev groff-base python3 strace)
check_packages=(clang-14 libclang-rt-14-dev llvm-14 clang-tidy-14 clang-format-14 libbenchmark-dev
  libeigen3-dev)

say() { printf 'fourpiles: %s\n' "$*" >&2; }

# quietly LOG COMMAND...: runs the command with its output in build/log/LOG; when it fails, shows
# the end of that log and stops.
quietly() {
  local log=$root/build/log/$1
  shift
  mkdir -p "$root/build/log"
  if ! "$@" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    say "failed: $*"
    say "the whole output is in ${log#"$root/"}"
    exit 4
  fi
}

# install_missing PACKAGE...: installs those that are not there; silent when all are.
install_missing() {
  command -v dpkg-query >/dev/null || return 0  # another system: CMake says what it lacks
  local installed package missing=() as_root=()
  installed=$(dpkg-query -W -f '${Package}:${Status}\n' "$@" 2>/dev/null || true)
  for package; do
    grep -qxF "$package:install ok installed" <<<"$installed" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  ((EUID == 0)) || as_root=(sudo -n)  # -n: fails rather than asks for a password
  as_root+=(env DEBIAN_FRONTEND=noninteractive)
  say "installing ${missing[*]}"
  quietly apt-update "${as_root[@]}" apt-get update
  quietly apt-install "${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}"
} </dev/null

# configure PRESET [-DNAME=VALUE...]
configure() {
  say "configuring build/$1"
  (cd "$root" && quietly "configure-$1" cmake --preset "$@")
} </dev/null

# build PRESET [TARGET...]: silent when there is nothing to do.
build() {
  local preset=$1
  shift
  ninja -C "$root/build/$preset" -n "$@" 2>/dev/null | grep -q 'no work to do' && return
  say "compiling build/$preset (the first time takes some minutes)"
  quietly "compile-$preset" ninja -C "$root/build/$preset" "$@"
} </dev/null
