#!/usr/bin/env python3
"""weight.py [REVISION] [-r RUNS] - what swa.h costs its host: seconds of CPU to compile, bytes of text, and what there
is to read.

Compiled by gcc and clang at -O1, -O2, -O3 and -O3 -march=native: seconds of CPU (the least of RUNS, default 1), text.
Text of the functions by instance (an instruction set's kernels, or all that is not a kernel: generic) and by section of
the header, at gcc -O2. Lines and characters by section: code without comments and indentation, the shares of comments
(lines that are nothing else, and lines with one behind code), blank lines, and lines over 100 columns. With a REVISION
of git the same for its header, compiled in turn with this one, and the ratios.
"""
import argparse
import collections
import os
import re
import resource
import shutil
import subprocess
import sys

TOP = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
WORK = os.path.join("build", "weight")
INSTANCES = ["generic", "scalar", "neon", "avx2", "avx512", "pairs"]
WAYS = [(cc, flags) for cc in ("gcc", "clang") for flags in ("-O1", "-O2", "-O3", "-O3 -march=native")]


# ---- what there is to read ----

def blank(text):
    """The text with every comment replaced by \\1s, of which newlines stay; literals stay."""
    def mark(match):
        found = match.group(0)
        return re.sub(r"[^\n]", "\1", found) if found.startswith("/") else found
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", mark, text, flags=re.S)


def sections(text):
    """[(name, first line)], the top comment first."""
    found = [("top", 1)]
    for n, line in enumerate(text.split("\n"), 1):
        banner = re.match(r"/\* =+ \[SECTION (\d+)\] +([A-Z ]+[A-Z])", line)
        if banner:
            found.append(("%s %s" % (banner.group(1), banner.group(2).lower()), n))
    return found


def read(text):
    """{section: counts of lines, code, comments, trailing, blank, wide, characters}, and {function: section}."""
    marks, counts, functions = sections(text), collections.OrderedDict(), {}
    plain, at = blank(text).split("\n"), -1
    if not plain[-1]:
        plain.pop()
    raw = text.split("\n")
    for n, line in enumerate(plain, 1):
        while at + 1 < len(marks) and marks[at + 1][1] <= n:
            at += 1
        c = counts.setdefault(marks[at][0], collections.Counter())
        code = len(line.replace("\1", "").strip())
        c["lines"] += 1
        c["characters"] += code
        c["wide"] += len(raw[n - 1]) > 100
        if code:
            c["code"] += 1
            c["trailing"] += "\1" in line
        elif "\1" in line:
            c["comments"] += 1
        else:
            c["blank"] += 1
        name = re.search(r"SWA__FN\((\w+?)(?:##\w+)?\)\(", line) or re.match(r"[A-Za-z_].*?\b(?:swa__)?(\w+)\(", line)
        if name and at > 1 and not line.startswith("typedef"):         # declared in section 1, defined below
            functions.setdefault(name.group(1), marks[at][0])
    return counts, functions


# ---- what it costs to compile ----

def compile_one(header, cc, flags, out):
    """Seconds of CPU."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([cc, "-std=c99", "-w", "-DSWA_IMPLEMENTATION"] + flags.split()
                   + ["-x", "c", "-c", header, "-o", out], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def text_of(path):
    return int(subprocess.run(["size", path], check=True, stdout=subprocess.PIPE,
                              universal_newlines=True).stdout.split("\n")[1].split()[0])


def symbols(path, functions):
    """Bytes of functions by instance, and by section."""
    by_instance, by_section = collections.Counter(), collections.Counter()
    listing = subprocess.run(["nm", "-S", "--defined-only", path], check=True, stdout=subprocess.PIPE,
                             universal_newlines=True).stdout
    for line in listing.split("\n"):
        parts = line.split()
        if len(parts) != 4 or parts[2] not in "tT":
            continue
        name = re.sub(r"\..*", "", parts[3])
        kernel = re.match(r"swa__(\w+)_(scalar|neon|avx2|avx512|pairs)$", name)
        by_instance[kernel.group(2) if kernel else "generic"] += int(parts[1], 16)
        base = kernel.group(1) if kernel else re.sub("^swa__", "", name)
        # A kernel that a macro names is of the template, like those that it names itself.
        section = functions.get(base) or (functions.get("few") if kernel else "?")
        by_section[section] += int(parts[1], 16)
    return by_instance, by_section


# ---- the tables ----

def ratio(now, old):
    return "%10.2f" % (now / old) if old else ""


def print_compile(headers, runs):
    """Compiles the headers in turn; returns the last objects of gcc -O2, by header."""
    objects = {}
    print("%-26s %s" % ("", "".join("%14s %9s" % (h + ", s", "text") for h in headers)
                        + ("   s ratio text ratio" if len(headers) > 1 else "")))
    for cc, flags in WAYS:
        if not shutil.which(cc):
            print("%-26s SKIPPED: no %s here" % (cc, cc))
            continue
        least, size = {}, {}
        for _ in range(runs):
            for h, path in headers.items():
                out = os.path.join(WORK, "%s.%s.o" % (h, cc))
                least[h] = min(least.get(h, 1e9), compile_one(path, cc, flags, out))
                size[h] = text_of(out)
                if (cc, flags) == ("gcc", "-O2"):
                    objects[h] = out.replace(".o", ".kept.o")
                    shutil.copy(out, objects[h])
        names = list(headers)
        print("%-26s %s" % (cc + " " + flags, "".join("%14.1f %9d" % (least[h], size[h]) for h in names) + (
            ratio(least[names[0]], least[names[1]]) + ratio(size[names[0]], size[names[1]])
            if len(names) > 1 else "")), flush=True)
    return objects


def print_text(objects, functions, counts):
    if not objects:
        return
    found = {h: symbols(path, functions[h]) for h, path in objects.items()}
    for title, which, names in (("text by instance, gcc -O2", 0, INSTANCES), (
            "text by section, gcc -O2", 1, list(counts) + ["?"])):
        print("\n%-26s %s" % (title, "".join("%11s" % h for h in found)))
        for name in names:
            if any(found[h][which][name] for h in found):
                print("%-26s %s" % (name, "".join("%11d" % found[h][which][name] for h in found)))
        print("%-26s %s" % ("functions", "".join("%11d" % sum(found[h][which].values()) for h in found)))


def print_lines(counts):
    print("\n%-26s %7s %7s %9s %9s %9s %7s %7s" % ("to read", "lines", "code", "code char", "comment", "trailing",
                                                   "blank", "> 100"))
    total = sum(counts.values(), collections.Counter())
    inner = [c for name, c in counts.items() if not re.match("top|1 |.*license", name)]
    for name, c in list(counts.items()) + [("all", total), ("the implementation", sum(inner, collections.Counter()))]:
        n = c["lines"]
        print("%-26s %7d %7d %9d %8.1f%% %8.1f%% %6.1f%% %6.1f%%" % (
            name, n, c["code"], c["characters"], 100 * c["comments"] / n, 100 * c["trailing"] / n,
            100 * c["blank"] / n, 100 * c["wide"] / n))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("revision", nargs="?")
    arguments.add_argument("-r", type=int, default=1)
    options = arguments.parse_args()
    os.chdir(TOP)
    os.makedirs(WORK, exist_ok=True)
    headers = collections.OrderedDict(now="swa.h")
    if options.revision:
        path = os.path.join(WORK, options.revision.replace("/", "_"), "swa.h")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(subprocess.run(["git", "show", options.revision + ":swa.h"], check=True,
                                   stdout=subprocess.PIPE).stdout)
        headers[options.revision[:7]] = path
    cpu = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")] \
        if os.path.exists("/proc/cpuinfo") else ["unknown CPU"]
    print("%s, load %.1f" % (cpu[0], os.getloadavg()[0]))
    for cc in ("gcc", "clang"):
        if shutil.which(cc):
            print(subprocess.run([cc, "--version"], check=True, stdout=subprocess.PIPE,
                                 universal_newlines=True).stdout.split("\n")[0])
    counts, functions = {}, {}
    for h, path in headers.items():
        counts[h], functions[h] = read(open(path).read())
    objects = print_compile(headers, options.r)
    print_text(objects, functions, counts["now"])
    for h in headers:
        print("\n%s:" % h, end="")
        print_lines(counts[h])
    return 0


if __name__ == "__main__":
    sys.exit(main())
