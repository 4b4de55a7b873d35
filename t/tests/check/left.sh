# left.sh - for the scripts beside it: how much of a part's time is left. SWA_UNTIL is when it must have ended, in
# seconds since 1970; without it there is no limit. A script begins nothing that cannot end by then, and counts what it
# did not begin, or had to stop, as skipped: with a line that says SKIPPED and "cut by the budget".
left() {      # seconds
    local now
    now=$(date +%s)
    echo $((${SWA_UNTIL:-$((now + 1000000))} - now))
}
within() {    # seconds: the smaller of these and what is left, at least 1
    local l
    l=$(left)
    [ "$l" -lt "$1" ] || l=$1
    [ "$l" -ge 1 ] || l=1
    echo "$l"
}
export -f left within
