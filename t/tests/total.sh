#!/bin/sh
# total.sh LOG... - prints what the test binaries said and adds up their last lines. A log without such a line (a
# crash, a test that never ran) counts as a failure; with SWA_CUT=1, after a run that was stopped, as skipped unless it
# names a failure. The last line is `N passed, N failed, N skipped`.
passed=0 failed=0 skipped=0
for log; do
    name=$(basename "$log" .log)
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" 2> /dev/null | tail -n 1)
    grep -vE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" 2> /dev/null
    if [ -z "$line" ] && [ -n "${SWA_CUT:-}" ] && ! grep -qE '^[a-z_]+\.[ch]:[0-9]+: |FAILED' "$log" 2> /dev/null; then
        echo "SKIPPED: $name: not done, cut by the budget"
        skipped=$((skipped + 1))
        continue
    fi
    if [ -z "$line" ]; then
        echo "$name: NO RESULT (it crashed or ran nothing): counted as a failure"
        failed=$((failed + 1))
        continue
    fi
    printf '%-24s %s\n' "$name" "$line"
    set -- $line
    passed=$((passed + $1)) failed=$((failed + $3)) skipped=$((skipped + $5))
    if [ "$1" -eq 0 ] && [ "$3" -eq 0 ]; then
        echo "$name: NOTHING PASSED: counted as a failure"
        failed=$((failed + 1))
    elif [ "$3" -eq 0 ] && grep -q '^exit code ' "$log"; then
        echo "$name: ended with an error after its result: counted as a failure"
        failed=$((failed + 1))
    fi
done
[ "$skipped" -eq 0 ] || echo "$skipped SKIPPED, see above"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 -o -n "${SWA_CUT:-}" ]
