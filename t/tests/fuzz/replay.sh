#!/bin/sh
# replay.sh PROGRAM... - every fuzz target over its committed corpus. The last line is `N passed, N failed, N skipped`.
passed=0 failed=0
for program; do
    if "$program" "tests/fuzz/corpus/${program##*fuzz_}"; then passed=$((passed + 1))
    else failed=$((failed + 1)); echo "$program FAILED"; fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
