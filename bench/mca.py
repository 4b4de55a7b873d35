#!/usr/bin/env python3
"""mca.py - the inner loops of the kernels, counted for CPUs that are not at hand.

    make mca                                 compiles swa.h for AArch64 and x86-64, prints the tables of SPEED.md
    python3 bench/mca.py -d 'q.k f16'        the loops whose name holds that: instructions, and the load of each unit
    python3 bench/mca.py -o arm -c clang     one machine, another compiler
    python3 bench/mca.py --header FILE       another swa.h

Loops are taken from the compiled object, by their back edges, and given to llvm-mca: the cycles that a core would take
if all data were in L1 and every branch foreseen. A branch within a loop counts as not taken, so what lies behind one
that is always taken counts too much. Two percentages: the FMAs alone, spread over the units that run them, of those
cycles; and everything that those units run. Needs a compiler, objdump and llvm-mca (19 or later knows the Neoverses);
standard library only.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Options of llvm-mca, FMAs a cycle of the width that the kernels use, and the units that run them. N1 takes in four
# instructions a cycle (its optimization guide, 4.1), LLVM says three; all of Apple's cores are LLVM's model of 2013.
ARM = [("-mcpu=neoverse-n1 -dispatch=4", "N1", 2, r"N1UnitV\d$"), ("-mcpu=neoverse-v1", "V1", 4, r"V1UnitV\d$"),
       ("-mcpu=neoverse-v2", "V2", 4, r"V2UnitV\d$"), ("-mcpu=apple-m1", "Apple (Cyclone)", 3, r"CyUnitV$")]
# Intel's servers add and multiply 512 bits on two ports, 0 and 5. Of LLVM's models Skylake's alone knows both (those of
# Ice Lake and Sapphire Rapids were read from desktop parts, which have one); Sapphire Rapids takes in six a cycle.
X86 = [("-mcpu=skylake-avx512 -dispatch=6", "Intel, two 512-bit ports", 2, r"SKXPort[05]$")]
MACHINES = [("arm", "aarch64", "neon", ARM, "aarch64-linux-gnu-objdump", "aarch64-linux-gnu-gcc"),
            ("x86", "x86_64", "avx512", X86, "objdump", "gcc")]
CONVERTS = [("f16", r"fcvtl|vcvtph2ps"), ("bf16", r"u?shll2?\s.*#(?:0x10|16)$|zip1 v\d+\.8h|vpslld\s+\$0x10|vpermw"),
            ("q8", r"scvtf|saddw|vcvtdq2ps")]
BRANCH = r"(?:b|b\.\w+|cbn?z|tbn?z|j\w+)\s(?:.*, ?)?"


class Loop:
    """One innermost loop: its function, its instructions, and what they do."""

    def __init__(self, function, body):
        self.function, self.body, self.name, self.isa = function, body, None, None
        text = "\n".join(body)
        self.fmas = len(re.findall(r"^(?:fmla|vfmadd|vdpbf16ps|vpdpbusd|sdot)", text, re.M))
        self.exp2 = re.search(r"^(?:frintn|vrndscaleps)", text, re.M) is not None
        self.fetches = re.search(r"^(?:prfm|prefetch)", text, re.M) is not None
        self.type = next((name for name, words in CONVERTS if re.search("^(?:%s)" % words, text, re.M)), "f32")

    def of_latents(self):
        """Numbers 64 bytes apart: V is read from K's tiles."""
        loads = r"^(?:ldr [sq]\d+, \[(\w+), #(\d+)\]|(?:vfmadd|vbroadcastss|vmovss).*?(0x[0-9a-f]+)\((%\w+))"
        found = {(m[1] or m[4], int(m[2] or m[3], 0)) for m in (re.search(loads, x) for x in self.body) if m}
        return sum((base, at + 64) in found for base, at in found) >= 3


def loops_of(listing):
    """The innermost loops of every function in objdump's text."""
    function, lines, found = None, [], []
    for line in listing.splitlines() + ["<end>:"]:
        if line.endswith(">:"):
            if function:
                found += innermost(function, lines)
            function, lines = line[line.index("<") + 1:-2], []
            continue
        m = re.match(r"\s*([0-9a-f]+):\t(.*?)\s*(?:(?://|#) .*)?$", line)
        if m:
            lines.append((int(m.group(1), 16), re.sub(r"\s+", " ", m.group(2)).strip()))
    return found


def innermost(function, lines):
    at = {address: i for i, (address, _) in enumerate(lines)}
    edges = set()
    for i, (_, text) in enumerate(lines):
        m = re.match(BRANCH + r"([0-9a-f]+) <", text)
        if m and at.get(int(m.group(1), 16), i + 1) <= i:
            edges.add((at[int(m.group(1), 16)], i))
    bare = [e for e in edges if not any(f != e and e[0] <= f[0] and f[1] <= e[1] for f in edges)]
    found = [(Loop(function, [text for _, text in lines[first:last + 1]]), first, last) for first, last in bare]
    loops, taken = [], []                 # code out of line jumps back too: of those that overlap, the fullest
    for x, first, last in sorted(found, key=lambda f: (-f[0].fmas, len(f[0].body))):
        if all(last < a or first > b for a, b in taken):
            taken.append((first, last))
            loops.append(x)
    return loops


def name_of(x, kind):
    rows = kind[-1]
    if re.match(r"many(_narrow|_pairs|_narrow_pairs|_exp_pairs)?$", kind):
        role = "exp2" if x.exp2 else "q.k" if x.fetches else "p.v, latents" if x.of_latents() else "p.v"
        return "prefill " + role + ", half a panel" * ("narrow" in kind) + ", pairs" * ("pairs" in kind)
    if kind.startswith("few_keys"):
        return "decode q.k %s, group %s" % (x.type, rows)
    if kind.startswith("few_values"):
        return "decode p.v %s, group %s" % (x.type, rows)
    if kind.startswith("product_"):
        return "product, %s" % kind.split("_")[1]
    if kind == "few_dots":                 # 16 keys, in one vector, two or four
        body = " ".join(x.body)
        return "decode q.k int8, group %d" % (x.fmas // (4 if "sdot" in body else 1 if "zmm" in body else 2))
    return {"many_dots": "prefill q.k int8", "expand": "MLA, naive path"}.get(kind)


def name_loops(loops, isa):
    """Of each kind of work the loop with the most FMAs: the others are for what is left over."""
    best = {}
    for x in loops:
        m = re.match(r"swa__(\w+?)_%s(?:\.|$)" % isa, x.function)
        kind = m.group(1) if m else None
        x.name = name_of(x, kind) if kind and x.fmas >= 4 else None
        if x.name and (x.name not in best or x.fmas > best[x.name].fmas):
            best[x.name] = x
    return sorted(best.values(), key=lambda x: x.name)


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit("mca.py: %s: %s" % (" ".join(command), done.stderr.strip()[:400]))
    return done.stdout


def mca(triple, cpu, body):
    """Cycles per turn and the load of each unit; None if this CPU lacks an instruction."""
    newest = [v for v in range(40, 13, -1) if shutil.which("llvm-mca-%d" % v)]
    turns, tool = 300, "llvm-mca-%d" % newest[0] if newest else "llvm-mca"
    text = "\n".join(re.sub("(^" + BRANCH + ")[0-9a-f]+ <[^>]*>", r"\1.Lx", x) for x in body) + "\n"
    out = subprocess.run([tool, "-mtriple=" + triple, "-iterations=%d" % turns] + cpu.split(), input=text,
                         capture_output=True, text=True).stdout
    if "Total Cycles:" not in out:
        return None
    names = dict(re.findall(r"^\[([\d.]+)\]\s+- (\S+)", out, re.M))
    table = out[out.index("Resource pressure per iteration:"):].splitlines()
    columns = zip(re.findall(r"\[([\d.]+)\]", table[1]), table[2].split())
    load = [(float(v), names.get(c, c)) for c, v in columns if v != "-"]
    return int(re.search(r"Total Cycles:\s+(\d+)", out).group(1)) / turns, sorted(load, reverse=True)


def listing_of(compiler, objdump, header):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "swa.o")
        run(compiler.split() + ["-std=c99", "-O2", "-DSWA_IMPLEMENTATION", "-DSWA_HEADER_FILENAME=\"%s\"" % header,
                                "-x", "c", "-c", header, "-o", path])
        return run([objdump, "-d", "--no-show-raw-insn", path])


def cell(triple, x, options, pipes, units):
    counted = mca(triple, options, x.body)
    if counted is None:
        return ""
    cycles, load = counted
    vector = [v for v, name in load if re.match(units, name)]
    even = sum(vector) / max(len(vector), 1)
    return "%.1f: %.0f, %.0f" % (cycles, 100 * x.fmas / pipes / cycles, 100 * even / cycles)


def print_loops(triple, loops, cpus, word):
    for x in loops:
        if word not in x.name:
            continue
        print("%s (%s): %d instructions, %d FMAs" % (x.name, x.function, len(x.body), x.fmas))
        print("\n".join("    " + t for t in x.body))
        for options, title, _, _ in cpus:
            counted = mca(triple, options, x.body)
            if counted:
                units = ", ".join("%s %.1f" % (name, v) for v, name in counted[1][:8])
                print("  %s: %.2f cycles; %s" % (title, counted[0], units))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("-c", "--compiler", help="instead of gcc")
    p.add_argument("-d", "--dump", metavar="WORD")
    p.add_argument("-o", "--only", choices=["arm", "x86"])
    p.add_argument("--header", default=os.path.join(ROOT, "swa.h"))
    p.add_argument("--listing", help="objdump's text of an object, instead of compiling")
    a = p.parse_args()
    for machine, triple, isa, cpus, objdump, gcc in MACHINES:
        if a.only not in (None, machine):
            continue
        target = " --target=aarch64-linux-gnu" if machine == "arm" else ""
        compiler = (a.compiler + target if a.compiler else gcc) + (" -march=armv8.2-a+dotprod" if target else "")
        if a.listing:
            with open(a.listing, encoding="utf-8") as f:
                listing = f.read()
        else:
            listing = listing_of(compiler, objdump, os.path.abspath(a.header))
        loops = name_loops(loops_of(listing), isa)
        if a.dump:
            print_loops(triple, loops, cpus, a.dump)
            continue
        print("| cycles: %% FMAs, %% units | instructions, FMAs | %s |" % " | ".join(c[1] for c in cpus))
        print("|---|---:|%s" % ("---:|" * len(cpus)))
        for x in loops:
            cells = " | ".join(cell(triple, x, options, pipes, units) for options, _, pipes, units in cpus)
            print("| %s | %d, %d | %s |" % (x.name, len(x.body), x.fmas, cells))
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
