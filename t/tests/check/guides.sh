#!/bin/sh
# guides.sh CC - the code that examples/hosts/*.md show, compiled. What a reader's engine would have around it stands in
# each page as a comment that is not rendered: <!-- compile ... -->. The last line counts.
cc=${1:-cc} passed=0 failed=0
dir=build/guides
mkdir -p $dir
for page in examples/hosts/*.md; do
    name=$(basename "$page" .md)
    awk '/^<!-- compile$/ || /^```c$/ { on = 1; next }
         /^-->$/ || /^```$/ { on = 0 }
         on { print }' "$page" > "$dir/$name.c"
    if grep -q swa_ "$dir/$name.c" && $cc -std=c99 -Wall -Wextra -Wconversion -Werror -I. -c "$dir/$name.c" \
            -o "$dir/$name.o"; then passed=$((passed + 1))
    else
        echo "FAILED: the code in $page"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
