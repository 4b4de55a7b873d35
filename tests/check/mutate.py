#!/usr/bin/env python3
"""mutate.py - breaks swa.h in many places, one at a time, and asks the tests whether they notice.

    mutate.py                    240 mutants, chosen by seed 1, spread over all sections with code
    mutate.py -n 40 -t 300       a sample: at most 40, and none is begun after 300 seconds
    mutate.py --survivors        after tests were added: the last run again, but only its survivors are tried anew
    mutate.py -j 2 -s 7 -f few   workers, another seed, only functions whose name holds the word
    mutate.py -e                 those in mutants.txt too: is it still true that they make no difference?

A mutant is compiled at -O0 without SIMD, which takes a third of a second, and run against the quick tests. If the
compiler makes the original's object of it there, because the change stands in an instruction set's own code, the same
with all instruction sets. What lives is compiled at -O1 with all of them and meets all tests, and the fuzz targets with
their corpus. Those that caught most per second go first; the first failure ends it; a hang counts as caught. What a
test with all instruction sets lets live meets it once more as on CPUs of other kinds (other_cpu.h), for which swa.h
chooses other kernels.
A mutant that does not compile, or whose object at -O1 is the original's byte for byte, does not count: the next one
takes its place. Nor does one that lives in a place which no test reaches, where this CPU cannot be taken for another:
it is named, and counted as skipped.

What survives is listed with its line. mutants.txt beside this file holds those that were examined and make no
difference to a caller, with the reason; they are neither tried nor counted. The choice hangs on the text of the lines
and not on their numbers, so that it stays the same when other parts of the header change. Verdicts are written to
build/mutate/results as they come (-o names another file), and a run that was stopped goes on from there if header and
tests are the same. The run fails if more than one in twenty survives, and more than three: two of the 36 for which a
short run has time are nothing unusual where one in fifty does. The last line is `N passed, N failed, N skipped`.
"""
import argparse
import collections
import concurrent.futures
import glob
import hashlib
import json
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
RESULTS = os.path.join(WORK, "results")
SIMD_SECTIONS = (9, 10, 11)
QUICK = 0.06                                                     # seconds of a test function at -O1, all its runs
UNTIL = float(os.environ.get("SWA_UNTIL", "inf"))                 # left.sh: when all must have ended
ENVIRONMENT = dict(os.environ, LD_LIBRARY_PATH=".")               # where a mutant's library lies
OTHER = os.path.join(TOP, "tests", "check", "other_cpu.h")
SCALAR, VECTOR, WHOLE = range(3)                                 # the stages
SKIPPED = "SKIPPED, no CPU for it here"

Mutant = collections.namedtuple("Mutant", "section function line column old new operator text mutated nth")


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
# What changes only the time that a call takes is not mutated: what is fetched, and which CPU likes which way.
TIME_ONLY = re.compile(r"FETCH|per_key|per_step|\bl1\b|\bpf\b|fetch|ahead\b|\bjump\b|SWA__AHEAD|SWA__NEAR|define SWV_FEW")
TIME_FUNCTION = re.compile(r"(?!swa__gather)\w*(fetch|ahead|soon|likes_)")


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
    source, found, seen, like = text.split("\n"), [], set(), collections.Counter()
    for number, section, function, code in code_lines(text):
        first = number
        while source[first - 2].endswith("\\"):                 # a macro is read where it begins
            first -= 1
        if TIME_ONLY.search(source[number - 1]) or TIME_FUNCTION.match(function) or first not in active:
            continue
        for operator, pattern, replace in OPERATORS:
            for match in re.finditer(pattern, code):
                for new in replace(match):
                    start, stop = match.span(1)
                    line = source[number - 1]
                    mutated = line[:start] + new + line[stop:]
                    if mutated == line or line[start:stop] != match.group(1) or (number, mutated) in seen:
                        continue
                    seen.add((number, mutated))
                    m = Mutant(section, function, number, start, match.group(1), new, operator, line.strip(" \\"),
                               mutated.strip(" \\"), 0)
                    found.append(m._replace(nth=like[key(m)]))      # the same line may stand there twice
                    like[key(m)] += 1
    return found


def key(mutant):
    return "\t".join((mutant.function, mutant.text, mutant.mutated))


def keys(mutant):
    """By which mutants.txt may name it: itself, any change of its line, any line of its function."""
    return {key(mutant), key(mutant._replace(mutated="*")), key(mutant._replace(text="*", mutated="*"))}


def order(mutants, seed, wanted):
    """All mutants in the order in which they are tried, and how many of each section should count."""
    def rank(m):
        return hashlib.sha1(("%s|%s" % (seed, key(m))).encode()).hexdigest(), m.nth
    sections, quota, queues = collections.defaultdict(list), {}, {}
    for m in mutants:
        sections[m.section].append(m)
    lines = {s: len({m.line for m in ms}) for s, ms in sections.items()}
    for s, ms in sections.items():
        part = 1 / len(sections) + lines[s] / sum(lines.values())           # half are dealt out evenly, half by size
        quota[s] = min(len(ms), round(wanted / 2 * part))
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

def run(command, cwd, seconds, environment=None):
    """Exit code, or None if it took more than so many seconds of CPU (or sleeps for very long)."""
    def limits():
        whole = int(seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 5))
        resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        code = subprocess.run(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL, preexec_fn=limits,
                              timeout=max(1, min(600 + 10 * seconds, UNTIL - time.time())),
                              env=environment or ENVIRONMENT).returncode
    except subprocess.TimeoutExpired:
        return None
    return None if code == -signal.SIGXCPU else code


def give_up(why):
    """Ends the run before the first mutant: wrong, unless something was stopped because the time is up."""
    if time.time() < UNTIL:
        sys.exit("mutate.py: " + why)
    print("SKIPPED: no mutant was tried, cut by the budget\n0 passed, 0 failed, 1 skipped")
    sys.exit(0)


def timed(command, cwd):
    """(exit code, what it wrote, seconds of CPU) of a command."""
    ran = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, universal_newlines=True, env=ENVIRONMENT)
    wrote = ran.stdout.read()
    ran.stdout.close()
    _, ran.returncode, used = os.wait4(ran.pid, 0)
    return ran.returncode, wrote, used.ru_utime + used.ru_stime


Program = collections.namedtuple("Program", "name source inside")     # inside: it compiles the header itself


class Bench:
    """What all workers share: compiled tests, the original's objects, and how long each test takes."""

    def __init__(self, cc):
        self.cc = [cc, "-std=c99", "-w"]
        fast = []
        if subprocess.run([cc, "-mfma", "-x", "c", "-", "-c", "-o", os.devnull], input=b"", stderr=subprocess.DEVNULL,
                          check=False).returncode == 0 and " fma " in open("/proc/cpuinfo").read():
            fast = ["-mfma", "-fno-math-errno", "-ffp-contract=off"]      # fmaf as an instruction, not a call
        self.flags = {SCALAR: ["-O0", "-DSWA_NO_SIMD"] + fast, VECTOR: ["-O0"] + fast, WHOLE: ["-O1"] + fast}
        self.programs = []
        for source in sorted(glob.glob("tests/test_*.c") + glob.glob("tests/fuzz/fuzz_*.c")):
            inside = re.search(r"\bswa__|define SWA_API", open(source).read()) is not None
            self.programs.append(Program(os.path.basename(source)[:-2], source, inside))
        self.seconds, self.kills, self.lock = {}, collections.Counter(), threading.Lock()
        self.objects, self.quick = {}, {}
        probe = os.path.join(TOP, WORK, "probe")
        self.others = []                         # kinds of CPU that this one can be taken for
        if run([cc, "-DSWA_OTHER_CPU", "-x", "c", OTHER, "-o", probe], TOP, 30) == 0:
            probed = subprocess.run([probe], capture_output=True, text=True)
            self.others = probed.stdout.split() if probed.returncode == 0 else []
        if self.others:
            self.cc += ["-include", OTHER]

    def lay(self, path):
        """A copy of the tree that a mutant needs: the tests' sources include ../swa.h."""
        def copy(source, target):
            if source.endswith((".c", ".h")):
                shutil.copy(source, target)
            else:
                os.symlink(os.path.abspath(source), target)
        shutil.rmtree(path, ignore_errors=True)
        for folder in ("tests", "examples"):
            shutil.copytree(folder, os.path.join(path, folder), copy_function=copy)
        shutil.copy("swa.h", path)

    def compile(self, path, stage):
        """The object of the header in path, or None. The tests find the library of the same name at run time."""
        common = self.cc + self.flags[stage]
        if (run(common + ["-fPIC", "-DSWA_IMPLEMENTATION", "-x", "c", "-c", "tests/library.h", "-o", "swa.o"], path, 300) != 0
                or run(common + ["-shared", "-Wl,-Bsymbolic", "swa.o", "-o", "libswa.so", "-lm"], path, 300) != 0):
            return None
        with open(os.path.join(path, "swa.o"), "rb") as f:
            return f.read()

    def command(self, path, program, stage):
        """What runs a program, or None if it cannot be built."""
        arguments = ["tests/fuzz/corpus/" + program.name[5:]] if program.name.startswith("fuzz") else ["-x"]
        if stage != WHOLE:
            arguments += self.quick[program.name]
        if not program.inside:
            return [os.path.join(TOP, WORK, program.name)] + arguments
        flags = ["-O0"] + [f for f in self.flags[stage] if f != "-O1"]
        built = run(self.cc + flags + [program.source, "-o", program.name, "-lm", "-lpthread"], path, 300)
        return ["./" + program.name] + arguments if built == 0 else None

    def choose_quick(self, program, verbose):
        """The test functions of the first stages, as words; a word must not be part of a slow one's name."""
        took = collections.Counter()
        for name, seconds in re.findall(r"^(\w+) .* checks +([\d.]+) s  ", verbose, flags=re.M):
            took[name] += float(seconds)
        slow = [name for name in took if took[name] > QUICK]
        words = [name for name in took if name not in slow and not any(name in other for other in slow)]
        if words or program.inside:
            self.quick[program.name] = words

    def try_original(self, path, program, stage):
        """Runs a program on the header as it is: it must pass, and is timed. What is wrong, or None."""
        if stage == WHOLE and not program.inside and run(
                self.cc + ["-O3" if program.name == "test_model" else "-O1", "-DSWA__IMPLEMENTED", program.source, "-o",
                           os.path.join(WORK, program.name), "-L" + path, "-lswa", "-lm", "-lpthread"], ".", 300) != 0:
            return "%s does not compile" % program.source
        if stage != WHOLE and program.name not in self.quick:
            return None
        command = self.command(path, program, stage)
        code, wrote, seconds = timed(command + ["-v"] * program.name.startswith("test"), path) if command else (1, "", 0)
        if code != 0:
            return "%s does not pass on the header as it is" % program.name
        self.seconds[stage, program.name] = seconds
        if stage == WHOLE and program.name.startswith("test"):
            self.choose_quick(program, wrote)
        return None

    def prepare(self, workers):
        """Compiles the tests, and runs them on the original in every stage."""
        path = os.path.join(WORK, "original")
        self.lay(path)
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            for stage in (WHOLE, VECTOR, SCALAR):
                self.objects[stage] = self.compile(path, stage)
                if self.objects[stage] is None:
                    give_up("the header as it is does not compile")
                for wrong in list(pool.map(lambda p, s=stage: self.try_original(path, p, s), self.programs)):
                    if wrong:
                        give_up(wrong)
                print("stage %d: the tests pass on the header as it is, in %.1f s"
                      % (stage, sum(t for (s, _), t in self.seconds.items() if s == stage)), flush=True)

    def programs_of(self, stage, section):
        """Most promising first: kills in this section per second."""
        def worth(program):
            kills = self.kills[section, program.name] + 0.2 + 0.02 * self.kills[0, program.name]
            return kills / (self.seconds[stage, program.name] + 0.05)
        return sorted((p for p in self.programs if (stage, p.name) in self.seconds), key=worth, reverse=True)

    def killed(self, mutant, by):
        with self.lock:
            self.kills[mutant.section, by] += 1
            self.kills[0, by] += 1

    def judge(self, path, mutant, lines):
        """("caught", by), ("survived", ""), or (why it does not count, "")."""
        line = lines[mutant.line - 1]
        self.write(path, lines, mutant.line,
                   line[:mutant.column] + mutant.new + line[mutant.column + len(mutant.old):])
        differs = False
        for stage in (SCALAR, VECTOR, WHOLE):
            if stage == VECTOR and differs:
                continue                         # it is for what SCALAR does not hold
            made = self.compile(path, stage)
            if made is None:
                return "does not compile", ""
            differs = made != self.objects[stage]
            if not differs and stage == WHOLE:
                return "the same object", ""
            if not differs:
                continue
            by = self.caught(path, mutant.section, stage)
            for cpu in self.others if stage != SCALAR else ():
                by = by or self.caught(path, mutant.section, stage, dict(ENVIRONMENT, SWA_OTHER_CPU=cpu))
            if by:
                return "caught", by
        return "survived" if self.others or self.reached(path, mutant, lines) else SKIPPED, ""

    def caught(self, path, section, stage, environment=None):
        """The program that fails on the header in path, or None."""
        for program in self.programs_of(stage, section):
            command = self.command(path, program, stage)
            code = run(command, path, 3 + 5 * self.seconds[stage, program.name], environment) if command else 1
            if code != 0:
                return program.name + (" (hangs)" if code is None else "")
        return None

    def reached(self, path, mutant, lines):
        """Whether a test comes to the mutant's line, or the nearest before it where a statement can stand."""
        for number in range(mutant.line, max(mutant.line - 30, 0), -1):
            self.write(path, lines, number, "__builtin_trap(); " + lines[number - 1])
            if self.compile(path, VECTOR) not in (None, self.objects[VECTOR]):
                return self.caught(path, mutant.section, VECTOR) is not None
        return True

    @staticmethod
    def write(path, lines, number, text):
        """The header, with another text in the line of this number."""
        with open(os.path.join(path, "swa.h"), "w") as f:
            f.write("\n".join(lines[:number - 1] + [text] + lines[number:]))


def state(options):
    """What verdicts hang on: (header, tests)."""
    def digest(names):
        h = hashlib.sha1(options.cc.encode())
        for name in sorted(names):
            h.update(open(name, "rb").read())
        return h.hexdigest()
    return [digest(["swa.h"]), digest(glob.glob("tests/*.[ch]") + glob.glob("tests/fuzz/*.[ch]"))]


class Results:
    """Verdicts of an earlier run over the same header, and a file that takes new ones as they come."""

    def __init__(self, options):
        now, self.old, self.retried, self.name = state(options), {}, 0, options.o
        lines = []
        if os.path.exists(self.name):
            lines = [json.loads(line) for line in open(self.name) if line.endswith("\n")]
        if lines and lines[0][0] == now[0] and (lines[0][1] == now[1] or options.survivors):
            self.old = {place: (verdict, by) for place, verdict, by in lines[1:]}
        elif options.survivors:
            sys.exit("mutate.py: no run over this header in %s" % self.name)
        if options.survivors:
            self.retried = sum(verdict == "survived" for verdict, _ in self.old.values())
            self.old = {place: v for place, v in self.old.items() if v[0] != "survived"}
        with open(self.name + ".new", "w") as f:
            f.writelines(json.dumps(line) + "\n" for line in [now] + [[p] + list(v) for p, v in self.old.items()])
        os.replace(self.name + ".new", self.name)

    def add(self, mutant, verdict, by):
        with open(self.name, "a") as f:
            f.write(json.dumps(["%s\t%d" % (key(mutant), mutant.nth), verdict, by]) + "\n")

    def get(self, mutant):
        return self.old.get("%s\t%d" % (key(mutant), mutant.nth))


class Work:
    """Hands out mutants, section by section in turn, until enough of each have counted."""

    def __init__(self, queues, quota, deadline, kept, examined):
        self.queues, self.quota, self.deadline, self.examined = queues, quota, deadline, examined
        self.counted, self.out = collections.Counter(), collections.Counter()
        self.lock, self.results, self.kept = threading.Lock(), [], kept

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

    def known(self, mutant):
        """What needs no trial: (verdict, by), or None."""
        if self.examined & keys(mutant):
            return "examined", ""
        return self.kept.get(mutant)

    def done(self, mutant, verdict, by, replayed):
        with self.lock:
            self.out[mutant.section] -= 1
            if not replayed:
                self.kept.add(mutant, verdict, by)
            if verdict in ("caught", "survived"):
                self.counted[mutant.section] += 1
            self.results.append((mutant, verdict, by))
            if verdict in ("survived", SKIPPED):
                show(mutant, verdict)
            if len(self.results) % 20 == 0 and not replayed:
                print("%d mutants tried, %d counted, %d wanted" % (len(self.results), sum(self.counted.values()),
                                                                   sum(self.quota.values())), flush=True)


def show(m, verdict):
    print("%s: swa.h:%d %s, %s\n    - %s\n    + %s" % (verdict, m.line, m.function, m.operator, m.text, m.mutated),
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


def worker(bench, work, number, lines):
    path = os.path.join(WORK, "worker%d" % number)
    bench.lay(path)
    while True:
        mutant = work.next()
        if mutant is None:
            if not work.busy() or time.time() > work.deadline:
                return
            time.sleep(0.2)
            continue
        before = work.known(mutant)
        verdict, by = before or bench.judge(path, mutant, lines)
        if time.time() >= UNTIL and not before:              # a compiler or a test may have been stopped
            return
        if verdict == "caught":
            bench.killed(mutant, by.replace(" (hangs)", ""))
        work.done(mutant, verdict, by, before is not None)


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
    print("not counted: %d harmless by mutants.txt, %d without effect on the object, %d that do not compile, "
          "%d that no test reaches on this CPU"
          % (total["examined"], total["the same object"], total["does not compile"], total[SKIPPED]))
    if counted < sum(quota.values()):
        print("stopped by its time limit after %d of %d" % (counted, sum(quota.values())))
    if work.cut:
        print("SKIPPED: %d of %d mutants, cut by the budget" % (sum(quota.values()) - counted, sum(quota.values())))
    bad = total["survived"] > max(3, counted // 20) or (counted == 0 and not work.cut)
    print("%d passed, %d failed, %d skipped" % (total["caught"], total["survived"] if bad else 0,
                                                work.cut + total[SKIPPED]))
    return bad


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("-n", type=int, default=240)
    arguments.add_argument("-s", default="1")
    arguments.add_argument("-j", type=int, default=2)
    arguments.add_argument("-t", type=float, default=1e9)
    arguments.add_argument("-f", default="")
    arguments.add_argument("-o", default=RESULTS)
    arguments.add_argument("-e", action="store_true")
    arguments.add_argument("--survivors", action="store_true")
    arguments.add_argument("-l", action="store_true", help="list the mutants that would be tried")
    arguments.add_argument("--cc", default="clang" if shutil.which("clang") else os.environ.get("CC", "cc"))
    options = arguments.parse_args()
    os.chdir(TOP)
    text = open("swa.h").read()
    mutants = [m for m in all_mutants(text, active_lines(options.cc)) if options.f in m.function]
    queues, quota = order(mutants, options.s, options.n)
    print("%d places to break in %d sections" % (len(mutants), len(queues)), flush=True)
    if options.l:
        for s in sorted(queues):
            for m in queues[s][:quota[s]]:
                print("%d %s, %s\n    - %s\n    + %s" % (m.line, m.function, m.operator, m.text, m.mutated))
        return 0
    os.makedirs(WORK, exist_ok=True)
    kept, examined = Results(options), read_examined()
    if kept.old:
        print("%d verdicts on this header are taken from %s%s" % (len(kept.old), options.o, (
            "; only its %d survivors are tried again, with the tests of now" % kept.retried) * options.survivors))
    bench = Bench(options.cc)
    bench.prepare(options.j)
    ends = time.time() + options.t
    work = Work(queues, quota, min(ends, UNTIL), kept, set() if options.e else examined)
    work.cut = UNTIL < ends
    stale = examined.difference(*map(keys, mutants))
    if stale and not options.f:
        print("mutants.txt: %d entries are about code that is not there any more:\n%s"
              % (len(stale), "\n".join("    " + s.replace("\t", " | ") for s in sorted(stale))))
    threads = [threading.Thread(target=worker, args=(bench, work, i, text.split("\n"))) for i in range(options.j)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return report(work, quota)


if __name__ == "__main__":
    sys.exit(main())
