#!/usr/bin/env bash
# symbols_test.sh NM LIBRARY...: fails and names each symbol by which a library prints or ends the
# process. Left out are std::terminate, which compilers insert, and printing into a string. NM is
# binutils' nm, which ends a line in "U", or LLVM's, which ends it in "U 0 0".
set -uo pipefail

forbidden='v?f?printf|__v?f?printf_chk|puts|putchar|perror|stdout|stderr|std::(cout|cerr|clog)'
forbidden+='|fmt::v[0-9]+::v?print\(.*|exit|_exit|_Exit|quick_exit|abort'

nm=$1
shift
status=0
for library; do
  symbols=$("$nm" -C --undefined-only --format=posix "$library") || exit 2
  if sed -E 's/ U[ 0]*$//' <<<"$symbols" | grep -xE "$forbidden" | sort -u |
    sed "s/^/$(basename "$library"): /"; then
    status=1
  fi
done
exit $status
