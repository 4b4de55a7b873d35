#!/usr/bin/env python3
"""switches.py [-m [REVISION]] [WORD] - what a host leaves out (SWA_NO_...) is left out, and the rest works.

For each switch and some sets of them (those whose name holds WORD): gcc and clang, as C99 and C++17, compile the header
without a warning; the object names nothing of the part; switches.c passes with it. With -m instead what each saves:
seconds of CPU and bytes of text at gcc -O2, beside the header without switches, and beside REVISION's.
The last line is `N passed, N failed, N skipped`.
"""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import time

import weight

UNTIL = float(os.environ.get("SWA_UNTIL", "inf"))                     # left.sh
WORK = os.path.join("build", "switches")
WARN = ("-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual -Wwrite-strings "
        "-Werror").split()
# A switch, and what may not stand in any symbol's name then.
SWITCHES = [
    ("SWA_NO_MLA", r"mla|product|swa__expand|columns"),
    ("SWA_NO_LATENTS", r"mla|product|swa__expand|columns|tail_mixed|to_rows_"),
    ("SWA_NO_MODS", r"swa__(modify|bias)_(scalar|avx|neon)"),
    ("SWA_NO_INDEX", r"index|select|swa__best|swa__rank"),
    ("SWA_NO_LISTS", r"picked|wanted|swa__gather|unit_(listed|tree)|swa__list_(scalar|half|avx|neon)"),
    ("SWA_NO_MASKS", r"swa__mask_|swa_mask|compressed"),
    ("SWA_NO_BLOB", r"save|load$|record|swa__blob"),
    ("SWA_NO_F16", r"_f16_(scalar|avx|neon)"),                # masks have f16 and bf16 of their own
    ("SWA_NO_BF16", r"_bf16_(scalar|avx|neon)|(many|half)_pairs|exp_bf16|swa__sums|summed_(pv|scores|values)"),
    ("SWA_NO_Q8", r"_q8|few_dots"),
    ("SWA_NO_AMX", r"amx|swa__(turn|qk_|top_|panel_turn|takes_turns)|stage_(keys|values)$"),
    ("SWA_NO_STAGED", r"staged|fp8"),
    ("SWA_NO_AVX2", r"avx2"),
    ("SWA_NO_AVX512", r"avx512|(many|half)_pairs"),
    ("SWA_NO_SIMD", r"avx|neon"),
    ("SWA_SMALL", r"(keys|values)2_|(many|list)_half"),
]
SETS = [[name] for name, _ in SWITCHES] + [
    ["SWA_NO_AVX2", "SWA_NO_AVX512"],
    ["SWA_NO_F16", "SWA_NO_BF16", "SWA_NO_Q8"],
    ["SWA_NO_F16", "SWA_NO_BF16", "SWA_NO_Q8", "SWA_NO_STAGED"],
    ["SWA_NO_MLA", "SWA_NO_INDEX", "SWA_NO_LISTS", "SWA_NO_MASKS", "SWA_NO_BLOB", "SWA_NO_BF16",
     "SWA_NO_Q8", "SWA_NO_STAGED"],                           # an engine like llama2.c
    ["SWA_NO_MLA", "SWA_NO_INDEX", "SWA_NO_LISTS", "SWA_NO_MASKS", "SWA_NO_BLOB", "SWA_NO_F16", "SWA_NO_BF16",
     "SWA_NO_Q8", "SWA_NO_STAGED"],
    ["SWA_NO_MLA", "SWA_NO_INDEX", "SWA_NO_LISTS", "SWA_NO_MASKS", "SWA_NO_BLOB", "SWA_NO_BF16", "SWA_NO_Q8",
     "SWA_NO_STAGED", "SWA_SMALL"],
    ["SWA_NO_LATENTS", "SWA_NO_MODS", "SWA_NO_INDEX", "SWA_NO_LISTS", "SWA_NO_MASKS", "SWA_NO_BLOB", "SWA_NO_BF16",
     "SWA_NO_Q8", "SWA_NO_STAGED"],                           # what Llama and Mistral do not have either
    ["SWA_NO_LATENTS", "SWA_NO_MODS", "SWA_NO_INDEX", "SWA_NO_LISTS", "SWA_NO_MASKS", "SWA_NO_BLOB", "SWA_NO_BF16",
     "SWA_NO_Q8", "SWA_NO_STAGED", "SWA_SMALL"],              # the least of it
]


def said(command):
    """What a command that fails says; None if it succeeds."""
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True)
    return None if done.returncode == 0 else (done.stdout.strip() or "exit code %d" % done.returncode)


def examine(switches, number):
    """What is wrong with a set of switches; None = nothing. The number tells apart what several workers write."""
    defines = ["-D" + s for s in switches]
    unit, program = os.path.join(WORK, "swa%d.o" % number), os.path.join(WORK, "program%d" % number)
    for compiler, language in (("gcc", "c99"), ("clang", "c99"), ("g++", "c++17"), ("clang++", "c++17")):
        if not shutil.which(compiler):
            continue
        how = ["-c", "-o", unit] if compiler == "gcc" else ["-fsyntax-only"]
        wrong = said([compiler, "-std=" + language, "-O1"] + WARN + defines + how
                     + ["-DSWA_IMPLEMENTATION", "-x", "c" if language == "c99" else "c++", "swa.h"])
        if wrong:
            return "%s -std=%s: %s" % (compiler, language, wrong)
        wrong = said([compiler, "-std=" + language, "-fsyntax-only", "-DSWA_STATIC"] + WARN + defines
                     + ["-DSWA_IMPLEMENTATION", "-x", "c" if language == "c99" else "c++", "swa.h"])
        if wrong:                                      # what is left out may not be declared either
            return "SWA_STATIC, %s -std=%s: %s" % (compiler, language, wrong)
    names = subprocess.run(["nm", unit], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout.split()
    for name, gone in SWITCHES:
        left = [n for n in names if name in switches and n.startswith("swa_") and re.search(gone, n)]
        if left:
            return "%s leaves %s" % (name, " ".join(left[:8]))
    return (said(["gcc", "-std=c99", "-O1", "-DSWA__IMPLEMENTED"] + WARN + defines
                 + ["tests/check/switches.c", unit, "-o", program, "-lm"]) or said([program]))


def check(word):
    tools, count = shutil.which("gcc") and shutil.which("nm"), {"passed": 0, "failed": 0, "skipped": 0}
    longest = [15.0]                                   # seconds that a set took

    def judge(number, switches):
        began = time.time()
        if not tools or began + 2 * max(longest) > UNTIL:
            return "skipped", "SKIPPED: " + ("cut by the budget" if tools else "no gcc or nm here")
        wrong = examine(switches, number)
        longest.append(time.time() - began)
        return ("failed", "FAILED: " + wrong) if wrong else ("passed", "ok")

    sets = [s for s in SETS if word in " ".join(s)]
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        for switches, (verdict, text) in zip(sets, pool.map(judge, range(len(sets)), sets)):
            count[verdict] += 1
            print("%-60s %s" % (" ".join(switches), text), flush=True)
    print("%d passed, %d failed, %d skipped" % (count["passed"], count["failed"], count["skipped"]))
    return count["failed"] > 0 or not sets


def measure(word, revision):
    out = os.path.join(WORK, "swa.o")
    rows = [("all of it", [], "swa.h")] + [(" ".join(s), s, "swa.h") for s in SETS if word in " ".join(s)]
    if revision:
        path = os.path.join(WORK, "before", "swa.h")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(subprocess.run(["git", "show", revision + ":swa.h"], check=True, stdout=subprocess.PIPE).stdout)
        rows.insert(0, (revision, [], path))
    base = None
    print("%-78s %8s %9s %7s %7s" % ("gcc -O2", "seconds", "text", "of s", "of text"))
    for name, switches, header in rows:
        seconds = weight.compile_one(header, "gcc", "-O2 " + " ".join("-D" + s for s in switches), out)
        size = weight.text_of(out)
        base = base or (seconds, size)
        print("%-78s %8.1f %9d %7.2f %7.2f" % (name, seconds, size, seconds / base[0], size / base[1]), flush=True)
    return 0


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("-m", nargs="?", const="", help="what each switch saves, beside a revision")
    arguments.add_argument("word", nargs="?", default="")
    options = arguments.parse_args()
    os.chdir(weight.TOP)
    os.makedirs(WORK, exist_ok=True)
    return check(options.word) if options.m is None else measure(options.word, options.m)


if __name__ == "__main__":
    sys.exit(main())
