#!/usr/bin/env python3
"""mutate.py - breaks swa.h in many places, one at a time, and asks the tests whether they notice.

    mutate.py                    240 mutants, chosen by seed 1, spread over all sections with code
    mutate.py -n 40 -t 300       a sample: at most 40, and none is begun after 300 seconds
    mutate.py -r                 again those that survived last time
    mutate.py -j 2 -s 7 -f few   workers, another seed, only functions whose name holds the word

A mutant is first compiled without SIMD at -O0 and run against the quick tests; if it lives, at -O1 against the slower
ones; then with all instruction sets against all tests. Those that caught most go first, and a hang counts as caught.
A mutant that does not compile, or whose object is the original's byte for byte, does not count: the next one takes
its place.

What survives is listed with its line. mutants.txt beside this file holds those that were examined and make no
difference to a caller, with the reason; they do not count either. The choice hangs on the text of the lines and not
on their numbers, so that it stays the same when other parts of the header change. The run fails if more than one
in twenty survives (and more than two). The last line is `N passed, N failed, N skipped`.
"""
import argparse
import collections
import hashlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

TOP = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
WORK = os.path.join("build", "mutate")
EXAMINED = os.path.join("tests", "check", "mutants.txt")
SURVIVORS = os.path.join(WORK, "survivors")
SIMD_SECTIONS = (8, 12)
SLOW = ("test_cache", "test_bits", "test_mla")                   # not in the first stage
SLOWEST = ("test_model",)                                        # only in the last
STAGES = range(3)

Mutant = collections.namedtuple("Mutant", "section function line column old new operator text mutated")


# ---- the header, without comments and strings ----

def blank(text):
    """The same text, comments and literals of text replaced by blanks, so that columns stay."""
    def spaces(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", spaces, text, flags=re.S)


def name_of(line):
    """The function that a line at column 0 begins, or None."""
    if not re.match(r"[A-Za-z_]", line) or re.match(r"(typedef|struct|union|enum|extern)\b", line):
        return None
    template = re.search(r"SWA__FN\((\w+)\)\(", line)
    if template:
        return template.group(1)
    plain = re.search(r"(\w+)\(", re.sub(r"SWA__TARGET\([^)]*\)", "", line))
    return plain.group(1) if plain else None


def code_lines(text):
    """(number, section, function, code) of every line that the tests could miss: bodies, and vector operations."""
    section, function, inside, macro = 0, "-", False, None
    source, found = text.split("\n"), []
    for number, code in enumerate(blank(text).split("\n"), 1):
        banner = re.match(r"/\* =+ \[SECTION (\d+)\]", source[number - 1])
        if banner:
            section = int(banner.group(1))
        define = re.match(r"#\s*define\s+((?:SWV|SWA__)\w*)\(", code)
        if define:
            macro = define.group(1)
        if macro:
            begin = re.match(r"#\s*define\s+\w+\([^)]*\)", code)
            if section in SIMD_SECTIONS:
                found.append((number, section, macro, " " * begin.end() + code[begin.end():] if begin else code))
            if not source[number - 1].endswith("\\"):
                macro = None
            continue
        if code.startswith("#"):
            continue
        function = name_of(code) or function
        opens, closes = code.rfind("{"), code.find("}")
        if name_of(code) and re.search(r"\{.*\}\s*$", code):      # a whole function on one line
            at = code.index("{")
            found.append((number, section, function, " " * at + code[at:]))
        elif inside and closes == 0:
            inside = False
        elif inside:
            found.append((number, section, function, code))
        elif function != "-" and opens >= 0 and code.rstrip().endswith("{") and not re.match(r"(typedef|enum)", code):
            inside = True
    return found


# ---- operators: (name, pattern, replacements); group 1 is what changes ----

def other_number(match):
    text = match.group(1)
    if re.match(r"\d+(\.|e)", text):
        return ["1.0f" if float(text.rstrip("fF")) == 0 else "-" + text]
    digits = re.match(r"0[xX][0-9a-fA-F]+|\d+", text).group(0)
    value = int(digits, 0)
    forms = [value + 1] + ([value - 1] if value > 0 else [])
    return [(hex(v) if digits[:2] in ("0x", "0X") else str(v)) + text[len(digits):] for v in forms]


def swaps(*pairs):
    table = {}
    for a, b in pairs:
        table[a], table[b] = b, a
    return lambda match: [table[match.group(1)]]


def words(*pairs):
    return r"\b(" + "|".join(w for pair in pairs for w in pair) + r")\b", swaps(*pairs)


BOUNDS = (("<", "<="), (">", ">="))
SLOTS = (("lo", "hi"), ("left", "right"), ("dk", "dv"), ("first", "last"), ("begin", "end"), ("k0", "k1"),
         ("swa__min64", "swa__max64"), ("n_heads", "n_kv_heads"), ("SWA_F16", "SWA_BF16"), ("k_type", "v_type"))
# Conversions that can change a value: to a wider type in front of a product or sum of narrower ones, to another kind.
CONVERSION = (r"(?:\((?:size_t|int64_t)\)(?=\w[\w.>\-\[\]]* [*+] [\w.>\-\[\]]+)"
              r"|\((?:u?int(?:8|16|32)_t|float|double)\)"
              r"|\b(?:swa__(?:f32_from_b?f16|b?f16_from_f32|round16|align64|rint|type_size)|SWV_RINT))")
OPERATORS = [
    ("bound", r" (<|<=|>|>=) ", swaps(*BOUNDS)),
    ("swapped condition", r" (==|!=) ", swaps(("==", "!="))),
    ("and/or", r" (&&|\|\|) ", swaps(("&&", "||"))),
    ("negated condition", r"\bif \((.*)\) ", lambda m: ["!(" + m.group(1) + ")"] if balanced(m.group(1)) else []),
    ("sign", r" ([+-]|[+-]=) ", swaps(("+", "-"), ("+=", "-="))),
    ("factor", r" ([*/%]) ", lambda m: [{"*": "+", "/": "*", "%": "/"}[m.group(1)]]),
    ("bits", r" (&|\||<<|>>|&=|\|=) ", swaps(("&", "|"), ("<<", ">>"), ("&=", "|="))),
    ("off by one", r"(?<![\w.])(0[xX]\w+|\d[\d.]*(?:e[-+]?\d+)?[a-zA-Z]*)", other_number),
    ("slot", *words(*SLOTS)),
    ("arms", r"\? ([\w.>\-\[\]]+ : [\w.>\-\[\]]+)(?=[;),\]])", lambda m: [" : ".join(m.group(1).split(" : ")[::-1])]),
    ("dropped conversion", r"(" + CONVERSION + r")(?=[\w(])", lambda m: [""]),
    ("other status", r"\b(SWA_ERR_\w+)\b", lambda m: ["SWA_OK", "SWA_ERR_BLOB" if m.group(1) != "SWA_ERR_BLOB"
                                                      else "SWA_ERR_ARG"]),
    ("deleted check", r"^ *(if \(.*\) (?:return\b[^;]*|break|continue);)\s*\\?$", lambda m: [";"]),
    ("deleted statement", r"^ *((?!return|if|for|while|else|do|case|default|goto|typedef|const|static|enum|"
     r"(?:\w+ )+\**\w+(?:\[|,|;| =))[\w(*][^;{}]*;)\s*\\?$", lambda m: [";"]),
]
# What changes only the time that a call takes is not mutated.
TIME_ONLY = re.compile(r"PREFETCH|\bpf\b|fetch|ahead\b|\bjump\b|SWA__AHEAD|SWA__NEAR|define SWV_FEW|SWA_ASSERT")


def balanced(text):
    depth = 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if depth < 0:
            return False
    return depth == 0


def active_lines(cc):
    """The lines of swa.h that the compiler reads here: not another machine's instruction set, for example."""
    out = subprocess.run([cc, "-std=c99", "-E", "-dD", "-DSWA_IMPLEMENTATION", "-x", "c", "swa.h"], check=True,
                         stdout=subprocess.PIPE, universal_newlines=True).stdout
    active, at, inside = set(), 0, False
    for line in out.split("\n"):
        marker = re.match(r'# (\d+) "(.*?)"', line)
        if marker:
            at, inside = int(marker.group(1)), marker.group(2).endswith("swa.h")
            continue
        if inside and line.strip():
            active.add(at)
        at += 1
    return active


def all_mutants(text, active):
    source, found = text.split("\n"), []
    for number, section, function, code in code_lines(text):
        first = number
        while source[first - 2].endswith("\\"):                 # a macro is read where it begins
            first -= 1
        if TIME_ONLY.search(source[number - 1]) or first not in active:
            continue
        for operator, pattern, replace in OPERATORS:
            for match in re.finditer(pattern, code):
                for new in replace(match):
                    start, stop = match.span(1)
                    line = source[number - 1]
                    mutated = line[:start] + new + line[stop:]
                    if mutated != line and line[start:stop] == match.group(1):
                        found.append(Mutant(section, function, number, start, match.group(1), new, operator,
                                            line.strip(" \\"), mutated.strip(" \\")))
    return found


def key(mutant):
    return "\t".join((mutant.function, mutant.text, mutant.mutated))


def order(mutants, seed, wanted):
    """All mutants in the order in which they are tried, and how many of each section should count."""
    def rank(m):
        return hashlib.sha1(("%s|%s" % (seed, key(m))).encode()).hexdigest()
    sections, quota, queues = collections.defaultdict(list), {}, {}
    for m in mutants:
        sections[m.section].append(m)
    lines = {s: len({m.line for m in ms}) for s, ms in sections.items()}
    for s, ms in sections.items():
        least = wanted // (2 * len(sections))     # half are dealt out evenly, at most, half by size
        quota[s] = min(len(ms), max(least, round(wanted * lines[s] / sum(lines.values()))))
        by_operator = collections.defaultdict(list)
        for m in sorted(ms, key=rank):
            by_operator[m.operator].append(m)
        queues[s], used = [], set()
        while by_operator:                        # one of each operator in turn; a line is taken once, if possible
            for operator in sorted(by_operator):
                queue = by_operator[operator]
                at = next((i for i, m in enumerate(queue) if m.line not in used), 0)
                m = queue.pop(at)
                used.add(m.line)
                queues[s].append(m)
                if not queue:
                    del by_operator[operator]
    return queues, quota


# ---- building and running ----

def run(command, cwd, seconds):
    """Exit code, or None if it took more than so many seconds of CPU (or sleeps for very long)."""
    def limits():
        whole = int(seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 5))
        resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        code = subprocess.run(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL, timeout=600 + 10 * seconds, preexec_fn=limits).returncode
    except subprocess.TimeoutExpired:
        return None
    return None if code == -signal.SIGXCPU else code


def children():
    """Seconds of CPU that finished children have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Bench:
    """What all workers share: compiled tests, the original's objects, and how long each test takes."""

    def __init__(self, cc):
        self.cc = [cc, "-std=c99", "-w"]
        self.fast = []
        if subprocess.run([cc, "-mfma", "-x", "c", "-", "-c", "-o", os.devnull], input=b"", stderr=subprocess.DEVNULL,
                          check=False).returncode == 0 and " fma " in open("/proc/cpuinfo").read():
            self.fast = ["-mfma", "-fno-math-errno", "-ffp-contract=off"]      # fmaf as an instruction, not a call
        self.flags = (["-O0", "-DSWA_NO_SIMD"] + self.fast, ["-O1", "-DSWA_NO_SIMD"] + self.fast, ["-O1"] + self.fast)
        self.tests = sorted(f[:-2] for f in os.listdir("tests") if re.match(r"test_\w+\.c$", f))
        # A test that looks inside the library compiles it, and so has to be compiled with every mutant.
        self.inside = [t for t in self.tests if re.search(r"\bswa__", open("tests/%s.c" % t).read())]
        self.seconds, self.kills, self.lock = {}, collections.Counter(), threading.Lock()
        self.objects = {}

    def lay(self, path):
        """A copy of the tree that a mutant needs: the tests' sources include ../swa.h."""
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        for folder in ("tests", "examples"):
            os.makedirs(os.path.join(path, folder))
            for f in os.listdir(folder):
                full = os.path.join(TOP, folder, f)
                if os.path.isdir(full) or f.endswith((".gguf", ".ids")):
                    os.symlink(full, os.path.join(path, folder, f))
                else:
                    shutil.copy(full, os.path.join(path, folder))
        shutil.copy("swa.h", path)

    def compile(self, path, stage):
        """The object of the header in path, or None."""
        name = "swa.%d.o" % stage
        code = run(self.cc + self.flags[stage] + ["-DSWA_IMPLEMENTATION", "-x", "c", "-c", "swa.h", "-o", name], path,
                   300)
        if code != 0:
            return None
        with open(os.path.join(path, name), "rb") as f:
            return f.read()

    def link(self, path, test, stage):
        flags = self.flags[stage]
        if test in self.inside:
            command = self.cc + flags + ["tests/%s.c" % test, "-o", test, "-lm", "-lpthread"]
        else:
            command = self.cc + [os.path.join(TOP, WORK, test + ".o"), "swa.%d.o" % stage, "-o", test, "-lm",
                                 "-lpthread"]
        return run(command, path, 300) == 0

    def runs_in(self, test, stage):
        return stage == 2 or (test not in SLOWEST and (test in SLOW) == (stage == 1))

    def prepare(self):
        """Compiles the tests, and runs them on the original in every stage: they must pass, and are timed."""
        path = os.path.join(WORK, "original")
        self.lay(path)
        for test in self.tests:
            if test not in self.inside and run(self.cc + ["-O1", "-DSWA__IMPLEMENTED", "-c", "tests/%s.c" % test, "-o",
                                                     os.path.join(WORK, test + ".o")], ".", 300) != 0:
                sys.exit("mutate.py: tests/%s.c does not compile" % test)
        for stage in STAGES:
            self.objects[stage] = self.compile(path, stage)
            for test in self.tests:
                if not self.runs_in(test, stage):
                    continue
                began = children()
                if not self.objects[stage] or not self.link(path, test, stage) or run(["./" + test, "-x"], path, 600):
                    sys.exit("mutate.py: %s does not pass on the header as it is" % test)
                self.seconds[stage, test] = children() - began
        print("the tests pass on the header as it is; %s takes longest, %.1f s"
              % max(((t, s) for (_, t), s in self.seconds.items()), key=lambda p: p[1]), flush=True)

    def tests_of(self, stage, section):
        """Most promising first: kills in this section per second."""
        def worth(test):
            return (self.kills[section, test] + 0.2 + 0.02 * self.kills[0, test]) / (self.seconds[stage, test] + 0.05)
        tests = [t for t in self.tests if (stage, t) in self.seconds]
        return sorted(tests, key=worth, reverse=True)

    def judge(self, path, mutant, lines):
        """("caught", by), ("survived", ""), or (why it does not count, "")."""
        changed = list(lines)
        changed[mutant.line - 1] = (changed[mutant.line - 1][:mutant.column] + mutant.new
                                    + changed[mutant.line - 1][mutant.column + len(mutant.old):])
        with open(os.path.join(path, "swa.h"), "w") as f:
            f.write("\n".join(changed))
        for stage in STAGES:
            made = self.compile(path, stage)
            if made is None:
                return "does not compile", ""
            if made == self.objects[stage]:
                if stage == STAGES[-1]:
                    return "the same object", ""
                continue
            for test in self.tests_of(stage, mutant.section):
                if not self.link(path, test, stage):
                    return "caught", "does not link"
                code = run(["./" + test, "-x"], path, 5 + 5 * self.seconds[stage, test])
                if code != 0:
                    with self.lock:
                        self.kills[mutant.section, test] += 1
                        self.kills[0, test] += 1
                    return "caught", test + (" (hangs)" if code is None else "")
        return "survived", ""


class Work:
    """Hands out mutants, section by section in turn, until enough of each have counted."""

    def __init__(self, queues, quota, deadline):
        self.queues, self.quota, self.deadline = queues, quota, deadline
        self.counted, self.out = collections.Counter(), collections.Counter()
        self.lock, self.results = threading.Lock(), []

    def next(self):
        with self.lock:
            if time.time() > self.deadline:
                return None
            open_ = [s for s in self.queues if self.queues[s] and self.counted[s] + self.out[s] < self.quota[s]]
            if not open_:
                return None
            s = min(open_, key=lambda s: ((self.counted[s] + self.out[s]) / self.quota[s], s))
            self.out[s] += 1
            return self.queues[s].pop(0)

    def busy(self):
        with self.lock:
            return sum(self.out.values()) > 0

    def done(self, mutant, verdict, by, examined):
        with self.lock:
            self.out[mutant.section] -= 1
            if verdict == "survived" and examined & {key(mutant), key(mutant._replace(mutated="*"))}:
                verdict = "examined"
            if verdict in ("caught", "survived"):
                self.counted[mutant.section] += 1
            self.results.append((mutant, verdict, by))
            if verdict == "survived":
                show(mutant)
            if len(self.results) % 20 == 0:
                print("%d mutants tried, %d counted, %d wanted" % (len(self.results), sum(self.counted.values()),
                                                                   sum(self.quota.values())), flush=True)


def show(m):
    print("survived: swa.h:%d %s, %s\n    - %s\n    + %s" % (m.line, m.function, m.operator, m.text, m.mutated),
          flush=True)


def read_examined():
    """mutants.txt: blocks of `@ function`, `- line`, `+ line` or `+ *` for any change of it, `= reason`."""
    examined, block = set(), {}
    for line in open(EXAMINED) if os.path.exists(EXAMINED) else []:
        if line.startswith("@ "):
            block = {"@": line[2:].strip()}
        elif line[:2] in ("- ", "+ "):
            block[line[0]] = line[2:].strip()
            if line[0] == "+":
                examined.add("\t".join((block["@"], block["-"], block["+"])))
    return examined


def worker(bench, work, number, lines, examined):
    path = os.path.join(WORK, "worker%d" % number)
    bench.lay(path)
    while True:
        mutant = work.next()
        if mutant is None:
            if not work.busy() or time.time() > work.deadline:
                return
            time.sleep(0.2)
            continue
        work.done(mutant, *bench.judge(path, mutant, lines), examined)


def report(work, quota):
    results, tally = work.results, collections.defaultdict(collections.Counter)
    for m, verdict, by in results:
        for row in ("section %2d" % m.section, m.operator):
            tally[row][verdict] += 1
        if verdict == "caught":
            tally["by " + by.replace(" (hangs)", "")]["caught"] += 1
    print("\n%-24s %7s %9s %9s %s" % ("", "caught", "survived", "examined", "  without effect"))
    for row in sorted(tally, key=lambda r: (r.startswith("by "), not r.startswith("section"), r)):
        t = tally[row]
        print("%-24s %7d %9d %9d %9d" % (row, t["caught"], t["survived"], t["examined"],
                                        t["the same object"] + t["does not compile"]))
    total = collections.Counter(v for _, v, _ in results)
    hung = sum(1 for _, _, by in results if "hangs" in by)
    counted = total["caught"] + total["survived"]
    share = 100 * total["caught"] / counted if counted else 0
    print("%d mutants: %d caught (%d by a hang), %d survived: %.1f %%" % (counted, total["caught"], hung,
                                                                        total["survived"], share))
    print("not counted: %d harmless by mutants.txt, %d without effect on the object, %d that do not compile"
          % (total["examined"], total["the same object"], total["does not compile"]))
    if counted < sum(quota.values()):
        print("stopped by its time limit after %d of %d" % (counted, sum(quota.values())))
    bad = total["survived"] > max(2, counted // 20) or counted == 0
    print("%d passed, %d failed, 0 skipped" % (total["caught"], total["survived"] if bad else 0))
    return bad


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("-n", type=int, default=240)
    arguments.add_argument("-s", default="1")
    arguments.add_argument("-j", type=int, default=2)
    arguments.add_argument("-t", type=float, default=1e9)
    arguments.add_argument("-f", default="")
    arguments.add_argument("-r", action="store_true")
    arguments.add_argument("-l", action="store_true", help="list the mutants that would be tried")
    arguments.add_argument("--cc", default="clang" if shutil.which("clang") else os.environ.get("CC", "cc"))
    options = arguments.parse_args()
    os.chdir(TOP)
    text = open("swa.h").read()
    mutants = [m for m in all_mutants(text, active_lines(options.cc)) if options.f in m.function]
    if options.r:
        again = set(open(SURVIVORS).read().split("\n"))
        mutants = [m for m in mutants if key(m) in again]
    queues, quota = order(mutants, options.s, options.n)
    if options.r:
        quota = {s: len(queue) for s, queue in queues.items()}
    print("%d places to break in %d sections" % (len(mutants), len(queues)), flush=True)
    if options.l:
        for s in sorted(queues):
            for m in queues[s][:quota[s]]:
                print("%d %s, %s\n    - %s\n    + %s" % (m.line, m.function, m.operator, m.text, m.mutated))
        return 0
    os.makedirs(WORK, exist_ok=True)
    bench = Bench(options.cc)
    bench.prepare()
    work, examined = Work(queues, quota, time.time() + options.t), read_examined()
    stale = examined - {key(m) for m in mutants} - {key(m._replace(mutated="*")) for m in mutants}
    if stale and not options.r and not options.f:
        print("mutants.txt: %d entries are about code that is not there any more:\n%s"
              % (len(stale), "\n".join("    " + s.replace("\t", " | ") for s in sorted(stale))))
    threads = [threading.Thread(target=worker, args=(bench, work, i, text.split("\n"), examined))
               for i in range(options.j)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    with open(SURVIVORS, "w") as f:
        f.writelines(key(m) + "\n" for m, verdict, _ in work.results if verdict == "survived")
    return report(work, quota)


if __name__ == "__main__":
    sys.exit(main())
