#!/usr/bin/env python3
"""beside.py COMMIT|FOLDER [-r N] [bench's options] - every case of bench.c by this tree's library and by another's, in
turn in one process, and that in N processes (default 5): where code and data happen to lie changes from one to the next
by several percent. Prints our time by theirs, the median of the processes' medians, least and most; 2 % more than 1 is
marked.

For example: make bench-beside ARGS='0041486 --case decode --threads 1'"""
import os, re, statistics, subprocess, sys

def read(path):
    with open(path) as f:
        return f.read()

def side_of(commit):
    """Compiles COMMIT's library, or that of another checkout, as a side; returns the shared object."""
    tree = "build/beside/" + re.sub(r"\W", "_", commit)
    os.makedirs(tree, exist_ok=True)
    pack = ["tar", "c", "-C", commit] if os.path.isdir(commit) else ["git", "archive", commit]
    archive = subprocess.Popen([*pack, "swa.h", "bench"], stdout=subprocess.PIPE)
    subprocess.run(["tar", "x", "-C", tree], stdin=archive.stdout, check=True)
    for name in ("side.c", "side.h"):
        with open(f"{tree}/bench/{name}", "w") as f:
            f.write(read(f"bench/{name}"))
    flags = 7 if re.search(r"\bINDEX\b", read(f"{tree}/bench/work.h")) else 3
    compute = 4 if "SWA_BF16_TILE" in read(f"{tree}/swa.h") else 3
    out = f"{tree}/side.so"
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-w", "-shared", "-fPIC", f"-DSIDE_FLAGS={flags}",
                    f"-DSIDE_COMPUTE={compute}", f"{tree}/bench/side.c", "-o", out, "-pthread", "-lm"], check=True)
    return out

def main():
    words = sys.argv[1:]
    runs = 5
    if "-r" in words:
        at = words.index("-r")
        runs = int(words[at + 1])
        del words[at:at + 2]
    if not words or words[0].startswith("-"):
        sys.exit(__doc__)
    side, ratios, skipped = side_of(words[0]), {}, set()
    for _ in range(runs):
        out = subprocess.run(["build/bench", "--beside", side, *words[1:]], capture_output=True, text=True)
        for line in out.stdout.splitlines():
            m = re.match(r"(\S+) +(\S+) +(\S+) +(\d+) .* ([\d.]+) % of beside", line)
            if m and float(m.group(5)) == 0:
                skipped.add(f"{m.group(1)} FAILED in the other library")
            elif m and "disturbed" not in line:
                ratios.setdefault(m.group(1, 2, 3, 4), []).append(100 / float(m.group(5)))
            if re.search("SKIPPED:|FAILED in|WRONG$", line):
                skipped.add(line)
        if out.returncode and "rows," not in out.stdout:
            sys.exit(out.stderr or "bench failed")
    print(f"{'case':46} {'isa':7} {'k,v':5} T {'ours/theirs':>11} {'least':>7} {'most':>7}  of {words[0]}, {runs} processes")
    for (case, isa, kv, threads), r in ratios.items():
        mid = statistics.median(r)
        print(f"{case:46} {isa:7} {kv:5} {threads} {mid:11.3f} {min(r):7.3f} {max(r):7.3f}{'  slower' if mid > 1.02 else ''}")
    for line in sorted(skipped):
        print(line)

main()
