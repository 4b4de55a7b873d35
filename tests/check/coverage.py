#!/usr/bin/env python3
"""coverage.py DIR HEADER MISSING [BAD...] - what llvm-cov says about one header, summed over its instances, and judged.

A line or a side of a branch counts as run if any instance runs it. What none runs is listed by name, but for what
uncovered.txt beside this file gives a reason for. The run fails if another line than those is not run, if fewer than
95 % of the branches' sides are (reasons do not help here), or for each BAD test. With MISSING, why this CPU cannot run
all of the x86 kernels, the first two are a named skip. Entries that have nothing to explain any more are named, so that
the list can shrink.
"""
import collections
import fnmatch
import json
import os
import re
import sys


def read_lines(path, header):
    """Line number -> how often it ran."""
    runs, here = {}, False
    for line in open(path):
        if line.startswith("SF:"):
            here = os.path.basename(line[3:].strip()) == header
        elif here and line.startswith("DA:"):
            number, count = line[3:].split(",")[:2]
            runs[int(number)] = runs.get(int(number), 0) + int(count)
    return runs


def read_functions(path, header):
    """(line, column, line, column) -> [times true, times false], and function names by the lines that they hold."""
    sides, spans = collections.defaultdict(lambda: [0, 0]), []
    for f in json.load(open(path))["data"][0]["functions"]:
        name = f["name"].split(":")[-1]
        ours = [i for i, n in enumerate(f["filenames"]) if os.path.basename(n) == header]
        if not ours:
            continue
        for isa in ("_scalar", "_avx2", "_avx512", "_neon"):
            name = name[:-len(isa)] if name.endswith(isa) else name
        spans.append((f["regions"][0][0], f["regions"][0][2], name))
        for line, column, to, until, yes, no, file, _, _ in f["branches"]:
            if file in ours:
                sides[line, column, to, until][0] += yes
                sides[line, column, to, until][1] += no
    return sides, spans


def read_reasons(path):
    """[function pattern, text pattern, reason, used]"""
    found, reason = [], ""
    for line in open(path):
        line = line.strip()
        if line.startswith("=="):
            reason = line[2:].strip()
        elif line and not line.startswith("#"):
            function, text = line.split(": ", 1)
            found.append([function, text, reason, 0])
    return found


def main():
    folder, header, missing, bad = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    source = open(header).read().split("\n")
    runs = read_lines(os.path.join(folder, "lines.txt"), header)
    sides, spans = read_functions(os.path.join(folder, "functions.json"), header)
    reasons = read_reasons(os.path.join(os.path.dirname(os.path.abspath(__file__)), "uncovered.txt"))

    def function_of(line):
        inner = [s for s in spans if s[0] <= line <= s[1]]
        return max(inner)[2] if inner else "-"

    def explained(line, text):
        function, hit = function_of(line), False
        for entry in reasons:
            if fnmatch.fnmatchcase(function, entry[0]) and fnmatch.fnmatchcase(text, entry[1].replace("[", "[[]")):
                entry[3] += 1
                hit = True
        return hit

    # clang counts what lies between two regions too: a lone brace, an else, a line of the preprocessor.
    between = re.compile(r"(#.*|else|\}( else)?)$")
    dark = [n for n in sorted(runs) if runs[n] == 0 and not between.match(source[n - 1].strip())]
    open_lines = [n for n in dark if not explained(n, source[n - 1].strip())]
    half, open_sides = 0, []
    for (line, column, to, until), (yes, no) in sorted(sides.items()):
        text = source[line - 1][column - 1:until - 1] if line == to else source[line - 1][column - 1:].strip()
        half += (yes == 0) + (no == 0)
        if (yes == 0 or no == 0) and line not in dark and not explained(line, text):
            open_sides.append((line, text, "never true" if yes == 0 else "never false"))
    for n in open_lines:
        print("%s:%d %s: not run: %s" % (header, n, function_of(n), source[n - 1].strip()))
    for line, text, side in open_sides:
        print("%s:%d %s: %s: %s" % (header, line, function_of(line), side, text))
    for function, text, _, used in reasons:
        if not used:
            print("uncovered.txt: nothing to explain any more: %s: %s" % (function, text))
    share = 100 * (1 - half / (2 * len(sides)))
    print("lines:    %d of %d run, %.1f %%; %d have a reason, %d have none"
          % (len(runs) - len(dark), len(runs), 100 * (1 - len(dark) / len(runs)), len(dark) - len(open_lines),
             len(open_lines)))
    print("branches: %d of %d sides taken, %.1f %%; %d of the rest have no reason yet"
          % (2 * len(sides) - half, 2 * len(sides), share, len(open_sides)))
    if missing:
        print("SKIPPED: lines and branches are not judged: " + missing)
    failed = ((len(open_lines) > 0) + (share < 95)) * (not missing) + len(bad)
    skipped = 2 if missing else 0
    print("%d passed, %d failed, %d skipped" % (2 + len(bad) - failed - skipped, failed, skipped))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
