#!/bin/sh
# manual.sh CC - the code that people copy: the example of swa.h's first lines and that of the README, taken out of the
# text as they stand, with nothing added but what they say is the reader's, compiled with warnings as errors. The last
# line counts.
cc=$1 passed=0 failed=0
mkdir -p build/manual
begin='#include <stdlib.h>
int use(int64_t pos, int32_t n, int threads, int layer, const float *q, const float *k, const float *v, float *out);
int use(int64_t pos, int32_t n, int threads, int layer, const float *q, const float *k, const float *v, float *out) {
    (void)threads; (void)layer;'
compiles() {  # NAME
    if [ -s "build/manual/$1.body" ] && {
            printf '%s\n%s\n' '#include "../../swa.h"' "$begin"
            cat "build/manual/$1.body"
            printf '    return 0;\n}\n'; } > "build/manual/$1.c" &&
            $cc -std=c99 -Wall -Wextra -Wshadow -Werror -DSWA__IMPLEMENTED -c "build/manual/$1.c" \
                -o "build/manual/$1.o" 2> "build/manual/$1.log"; then passed=$((passed + 1))
    else
        echo "FAILED: the example of $1 does not compile"
        cat "build/manual/$1.log"
        failed=$((failed + 1))
    fi
}
sed -n '/^       swa_window win/,/^       }$/p' swa.h | sed 's/^ *\.\.\..*//' > build/manual/header.body
sed -n '/^swa_window win/,/^```$/p' README.md | sed '/^```$/d' > build/manual/readme.body
compiles header
compiles readme
# The first lines are enough: the example and how to include it stand in lines 1 to 42.
if [ "$(grep -n 'swa_attention()' swa.h | head -n 1 | cut -d: -f1)" -le 42 ]; then passed=$((passed + 1))
else
    echo "FAILED: the first 42 lines of swa.h no longer suffice"
    failed=$((failed + 1))
fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
