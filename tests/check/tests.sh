#!/usr/bin/env bash
# tests.sh MAKE CC JOBS - `make test` within what is left of the time (left.sh). If it has to be stopped, the programs
# that were done count, and so does a failure in one that was not; the others are named and skipped.
set -u
. tests/check/left.sh
make=$1 cc=$2 jobs=$3
[ -n "${SWA_TEST_SHORT:-}" ] || export SWA_TEST_ALL=1    # also what make test leaves out to be done in a minute
limit=$(within 1200)
timeout "$limit" "$make" test CC="$cc" JOBS="$jobs"
code=$?
[ $code = 124 ] || exit $code
[ "$limit" = 1200 ] || export SWA_CUT=1          # else something hangs
"$make" total CC="$cc"
