#!/usr/bin/env python3
"""registers.py [HEADER] [-c COMPILER]... [-o LEVEL]... - does every path through the library leave the vector registers
as it found them?

A function that returns with something in the upper halves of ymm0..15 or zmm0..15 makes the host's own SSE code crawl
on Intel's CPUs: 7 to 20 times slower, until something runs VZEROUPPER. A Zen does not show it, and gcc adds the
instruction only from -O2 on, so this looks at the object code: the header is compiled by gcc and clang at every level of
optimisation, linked, disassembled, and followed along all branches. A write to an upper half makes the state dirty,
VZEROUPPER clean, a call does what the called function does. The state must be clean at each return of an exported
function, and of a kernel, which nothing calls by name. And instructions on bf16 pairs, which few CPUs with AVX-512
have, may stand in the kernels for pairs alone, though all AVX-512 kernels are compiled for a CPU that has them (at -O0
the others hold dead branches, so not there). And no kernel at -O2 or -O3 calls a function that was compiled for SSE
while its registers are dirty: on Intel each such instruction waits for the register's upper half, which cost 5 % of
short windows. The last line is `N passed, N failed, N skipped`.
"""
import argparse
import collections
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import time

UNTIL = float(os.environ.get("SWA_UNTIL", "inf"))                     # left.sh
WORK = os.path.join("build", "registers")
LEVELS = ["-O1", "-O0", "-Os", "-Og", "-O3", "-O2"]                    # the likeliest first
UPPER = re.compile(r"%[yz]mm(?:\d|1[0-5])\b")
PAIRS = re.compile(r"\tv(?:dpbf16ps|cvtne\w*bf16)")
MAY_PAIR = re.compile(r"pairs|amx|swa__(many_tail_mixed|sums|pair_qk|pair_values)_avx512")       # the others: behind a branch, out of line
LEGACY = re.compile(r"(?!v|prefetch)\w+ .*%xmm")
ENDS = re.compile(r"^(?:repz |bnd )*(?:ret|hlt|ud2)")

# What follows an instruction: jump is an address or None; kind one of the words below.
Line = collections.namedtuple("Line", "address kind jump dirties cleans legacy")


def read(objdump):
    """{function: [Line]} of a linked program; foo.cold belongs to foo."""
    functions, name = collections.OrderedDict(), None
    for text in objdump.split("\n"):
        header = re.match(r"[0-9a-f]+ <([^>]+)>:", text)
        if header:
            name = re.sub(r"\.cold(\.\d+)?$", "", header.group(1))
            functions.setdefault(name, [])
            continue
        line = re.match(r" +([0-9a-f]+):\t(\S.*)", text)
        if not line or name is None:
            continue
        code = re.sub(r"^(?:notrack|bnd|rep\w*|data16|cs) +", "", line.group(2))
        target = re.match(r"(\w+) +([0-9a-f]+) <", code)
        kind, jump = "next", int(target.group(2), 16) if target else None
        if code.startswith("call"):
            kind = "call"
        elif code.startswith("jmp"):
            kind = "jump" if target else "indirect"
        elif target and code.startswith("j"):
            kind = "branch"
        elif ENDS.match(code):
            kind = "return" if "ret" in code else "stop"
        functions[name].append(Line(int(line.group(1), 16), kind, jump, bool(UPPER.search(code)),
                                    code.startswith(("vzeroupper", "vzeroall")), bool(LEGACY.match(code))))
    return functions


class Program:
    def __init__(self, functions):
        self.functions = functions
        self.entry = {lines[0].address: name for name, lines in functions.items() if lines}
        self.after = {name: [0, 1] for name in functions}              # state after a call in state clean, dirty
        self.vector = {name for name, lines in functions.items() if any(l.dirties for l in lines)}
        self.callers = collections.defaultdict(set)
        for name, lines in functions.items():
            for l in lines:
                if l.jump in self.entry and self.entry[l.jump] != name:
                    self.callers[self.entry[l.jump]].add(name)

    def follow(self, name, begin):
        """The worst state in which a function entered in state `begin` gives back control, and where that is."""
        lines = self.functions[name]
        index = {l.address: i for i, l in enumerate(lines)}
        # Blocks that nothing jumps to by name and nothing falls into are the cases of a switch.
        reached = {index[l.jump] for l in lines if l.jump in index} | {0}
        cases = [i for i in range(1, len(lines))
                 if i not in reached and lines[i - 1].kind in ("jump", "indirect", "return", "stop")]
        seen, work, worst, place = {}, [(0, begin)], 0, None
        self.calls, self.waits = set(), False
        while work:
            i, state = work.pop()
            if i >= len(lines) or seen.get(i, -1) >= state:
                continue
            seen[i] = state
            l = lines[i]
            state = 0 if l.cleans else 1 if l.dirties else state
            called = self.entry.get(l.jump)
            if called and called != name:
                self.calls.add((called, state))
            self.waits |= l.legacy and state == 1
            leaves = l.kind == "return" or (l.kind == "indirect" and not cases)
            if l.kind == "call" and called:
                state = self.after[called][state]
            if l.kind == "jump" and l.jump not in index:               # a call in place of the return
                state, leaves = self.after[called][state] if called else state, True
            if leaves and state > worst:
                worst, place = state, l.address
            if l.jump in index and l.kind in ("jump", "branch"):
                work.append((index[l.jump], state))
            if l.kind == "indirect":
                work += [(c, state) for c in cases]
            if l.kind in ("next", "call", "branch"):
                work.append((i + 1, state))
        return worst, place

    def findings(self):
        changed = True
        while changed:
            changed = False
            for name in self.vector | set(self.callers):
                for begin in (0, 1):
                    state = self.follow(name, begin)[0]
                    if state != self.after[name][begin]:
                        self.after[name][begin], changed = state, True
        for name in sorted(n for n in self.functions if n.startswith("swa_")):
            worst, place = self.follow(name, 0)
            if worst and not (name.startswith("swa__") and self.callers[name]):
                yield "%s at %x" % (name, place)

    def waiting(self):
        """Functions with SSE code that runs with dirty registers, in calls from clean ones."""
        work = [(n, 0) for n in self.functions if n.startswith("swa_") and not self.callers[n]]
        seen = set()
        while work:
            at = work.pop()
            if at in seen:
                continue
            seen.add(at)
            self.follow(*at)
            work += self.calls
            if self.waits and at[0].startswith("swa_"):
                yield "%s: SSE with dirty registers" % at[0]


def strangers(objdump, level):
    """Functions that hold instructions on bf16 pairs and should not."""
    name, found = "", set()
    for text in objdump.split("\n"):
        header = re.match(r"[0-9a-f]+ <([^>]+)>:", text)
        name = header.group(1) if header else name
        if PAIRS.search(text) and not MAY_PAIR.search(name) and level != "-O0":
            found.add("%s: bf16 pairs" % name)
    return sorted(found)


def examine(header, compiler, level):
    """(how many functions use vectors, findings), or None if it does not compile."""
    base = os.path.join(WORK, os.path.basename(compiler) + level)
    build = [compiler, "-std=c99", "-w", level, "-DSWA_IMPLEMENTATION", "-I", os.path.dirname(header), "-x", "c",
             header, os.path.join(WORK, "main.c"), "-o", base, "-lm"]
    if subprocess.run(build, check=False, timeout=max(1, min(600, UNTIL - time.time()))).returncode != 0:
        return None
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-w", base], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout
    program = Program(read(text))
    return len([n for n in program.vector if n.startswith("swa_")]), \
        list(program.findings()) + strangers(text, level) + \
        sorted(set(program.waiting() if level in ("-O2", "-O3") else ()))


def judge(header, compiler, level):
    """("passed", "failed" or "skipped", what to say)."""
    if os.uname().machine != "x86_64" or not shutil.which(compiler) or not shutil.which("objdump"):
        return "skipped", "SKIPPED: not x86-64, or no compiler or objdump here"
    try:
        found = examine(header, compiler, level) if time.time() + 5 < UNTIL else ()
    except subprocess.TimeoutExpired:
        found = ()
    if found == ():
        return "skipped", "SKIPPED: cut by the budget"
    if found is None or found[0] == 0:
        return "failed", "FAILED: " + ("does not compile" if found is None else "no function uses vectors")
    if found[1]:
        return "failed", "FAILED: %d return with dirty registers, run SSE with them, or hold bf16 pairs\n    %s" % (
            len(found[1]), "\n    ".join(found[1][:6]))
    return "passed", "%d functions use vectors, all return with clean registers, bf16 pairs in their own" % found[0]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("header", nargs="?", default="swa.h")
    arguments.add_argument("-c", action="append", help="compilers; both")
    arguments.add_argument("-o", action="append", help="levels; all")
    options = arguments.parse_args()
    os.makedirs(WORK, exist_ok=True)
    with open(os.path.join(WORK, "main.c"), "w") as f:
        f.write("int main(void) { return 0; }\n")
    ways = [(compiler, level) for compiler in options.c or ["gcc", "clang"] for level in options.o or LEVELS]
    count = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        work = [pool.submit(judge, os.path.abspath(options.header), *way) for way in ways]
        for way, done in zip(ways, work):
            verdict, text = done.result()
            count[verdict] += 1
            print("%-5s %s  %s" % (way + (text,)), flush=True)
    print("%d passed, %d failed, %d skipped" % (count["passed"], count["failed"], count["skipped"]))
    return count["failed"] > 0


if __name__ == "__main__":
    sys.exit(main())
