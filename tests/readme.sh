#!/bin/sh
# readme.sh CC [all] - the commands that README.md and the pages in examples show, taken out of the text and run in a copy
# of the tree in which nothing is built, as a new reader has it: every line of a block marked
# sh, and every `make ...` and `build/...` within a sentence. A command that is not named below is run as it stands, so
# that a new one is not forgotten. Without `all` those run that take seconds, and the library is built without
# optimisation; `all` (a part of make check) runs the others too, as a reader builds them. The last line counts.
set -u
cc=$1 all=${2:-} passed=0 failed=0 skipped=0
root=$PWD dir=$PWD/build/readme
tree=$dir/tree
rm -rf "$dir"
mkdir -p "$tree"
cp -R LICENSE Makefile README.md swa.h bench examples tests "$tree"
unset MAKEFLAGS MAKELEVEL MFLAGS ARGS
export CC="$cc" PREFIX="$dir/prefix" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
[ -n "$all" ] || export CFLAGS='-O0 -DSWA_NO_SIMD'

# One command to a line, behind the page it stands on. A block without a language would be read by nobody.
commands() {
    for page in README.md examples/*.md examples/*/*.md; do
        awk -v page="$page" '
            /^```/ { fence = fence ? 0 : $0; if (fence == "```") print page ": a block without a language"; next }
            fence == "```sh" { sub(/ +#.*/, ""); if ($0 != "") print page ": " $0; next }
            fence { next }
            { n = split($0, span, "`")
              for (i = 2; i < n; i += 2)
                  if (span[i] ~ /^(make [a-z]|(\.\/)?build\/[a-z_\/]+( |$))/) print page ": " span[i] }' "$page"
    done | awk '!seen[substr($0, index($0, ": "))]++'
}
fail() {
    echo "FAILED: $1"
    [ ! -s "$dir/log" ] || tail -n 15 "$dir/log"
    failed=$((failed + 1))
}
part() {      # PAGE: COMMAND, NAME: what the command does is a part of make check of its own
    if grep -q "^part \"*$2" tests/check.sh; then passed=$((passed + 1)); else fail "$1: no part $2 in make check"; fi
}
says() {      # COMMAND: something was printed, or it makes files and nothing else
    [ -s "$dir/log" ] || case $1 in *" > "* | *" -o "* | *"touch "*) : ;; *) false ;; esac
}
run() {       # PAGE: COMMAND, INSTEAD...: the command as it stands, or as a test can afford it
    what=$1 command=${1#*: }
    [ $# -lt 2 ] || command=$2
    if (cd "$tree" && timeout 400 sh -c "$command") > "$dir/log" 2>&1 < /dev/null && says "$command"
    then passed=$((passed + 1)); else fail "$what"; fi
}
long() {      # as run, for `all` alone
    [ -z "$all" ] || run "$@"
}
needs() {     # TOOL, PAGE: COMMAND...: as long, where there is that tool
    tool=$1
    shift
    [ -n "$all" ] || return
    if command -v "$tool" > /dev/null; then run "$@"; return; fi
    echo "SKIPPED: $1: no $tool here"
    skipped=$((skipped + 1))
}
one_command() {
    case ${1#*: } in
    "make test") part "$1" test- ;;
    "make check") part "$1" readme ;;               # this very script is in it
    "make packaging") part "$1" packaging ;;
    "make bench") long "$1" "make bench ARGS='--quick --case decode-w4096-d128-g2 --type f16 --threads 1'" ;;
    "make bench-mla") long "$1" "make bench-mla ARGS='--quick --case mla-step-n4096-absorbed-bf16 --threads 1'" ;;
    "make bench-peers"*)
        mkdir -p "$tree/build"
        [ ! -d "$root/build/peers" ] || ln -sfn "$root/build/peers" "$tree/build/peers"
        needs npm "$1" "make bench-peers ARGS='--quick --case decode-w4096-d128-f16 --threads 1'" ;;
    "make bench-generate") needs python3 "$1" "make bench-generate ARGS='-d 512 q4_k'" ;;
    "make figures") needs python3 "$1" ;;
    "make weight"*) needs python3 "$1" "make weight ARGS='-w \"gcc -O2\"'" ;;
    "make same" | "make bench-rewind" | "build/generate --compare") long "$1" ;;
    "make mpi"*) needs mpirun "$1" ;;
    "make web") needs wasm-ld "$1" ;;
    "cc -O2 -shared"*) long "$1" ;;
    "a block without a language") : > "$dir/log"; fail "$1" ;;
    *) run "$1" ;;
    esac
}
commands > "$dir/commands"
while IFS= read -r line; do one_command "$line"; done < "$dir/commands"
: > "$dir/log"
[ "$(wc -l < "$dir/commands")" -ge 12 ] || fail "fewer commands than README has: is the pattern right?"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
