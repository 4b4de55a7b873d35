#!/usr/bin/env python3
"""order.py order|parameters|columns|macros - four rules about swa.h, for lint.sh; prints a line per finding.

order: no section names a function, type or macro that a later section defines; a forward declaration is a finding too.
What the kernel template is given by its instances (SWV_*, SWA__FN) stands behind it on purpose.
parameters: a function of the implementation has at most 7.
columns: at most one line in a hundred is longer than 100.
macros: every macro begins with SWA_, swa__ or SWV, so that none of the host's is redefined or undefined.
"""
import re
import sys

from weight import blank

MOST, WIDEST, SHARE = 7, 100, 0.01
GIVEN = re.compile(r"SWV_|SWA__(FN|KERNEL_PASS)$")


def lines(text):
    """(number, section, code) of the implementation."""
    section, source = 0, text.split("\n")
    for number, code in enumerate(re.sub(r"\"(\\.|[^\"\\\n])*\"", "", blank(text)).replace("\1", "").split("\n"), 1):
        banner = re.match(r"/\* =+ \[SECTION (\d+)\]", source[number - 1])
        section = int(banner.group(1)) if banner else section
        if section > 1:
            yield number, section, code


def defined(code):
    """The name that a line defines, or None."""
    macro = re.match(r"# *define +(SWA_\w+)", code)
    kind = re.match(r"\} *(swa__\w+);", code) or re.match(r"typedef .*?\b(swa__\w+)[;(]", code)
    function = re.match(r"[A-Za-z].*?\b(swa_\w+)\(", re.sub(r"SWA__TARGET\(.*?\)", "", code))
    found = macro or kind or (function if not code.rstrip().endswith(";") else None)
    return found.group(1) if found else None


def order(text):
    where, seen = {}, set()
    for _, section, code in lines(text):
        if defined(code):
            where.setdefault(defined(code), section)
    for number, section, code in lines(text):
        for word in re.findall(r"\w+", code):
            if where.get(word, 0) > section and (section, word) not in seen and not GIVEN.match(word):
                seen.add((section, word))
                print("swa.h:%d: section %d names %s of section %d" % (number, section, word, where[word]))


def parameters(text):
    code = "\n".join(c for _, _, c in lines(text))
    first = next(n for n, _, _ in lines(text))
    head = re.compile(r"^(?!typedef)[A-Za-z][^;{}#]*?\b(swa__\w+|SWA__FN\(([\w#]+)\))\(([^{};]*)\)[ \\\n]*\{", re.M)
    for found in head.finditer(code):
        count = found.group(3).count(",") + 1
        if count > MOST:
            number = first + code.count("\n", 0, found.start())
            print("swa.h:%d: %s has %d parameters" % (number, found.group(2) or found.group(1), count))


def columns(text):
    wide = [n for n, line in enumerate(text.split("\n"), 1) if len(line) > WIDEST]
    if len(wide) > SHARE * text.count("\n"):
        print("swa.h: %d of %d lines (%.1f %%) are longer than %d columns" % (
            len(wide), text.count("\n"), 100 * len(wide) / text.count("\n"), WIDEST))


def macros(text):
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(r"\s*# *(?:define|undef) +(?!SWA_|SWV|swa__)(\w+)", line)
        if found:
            print("swa.h:%d: %s is not ours" % (number, found.group(1)))


if __name__ == "__main__":
    globals()[sys.argv[1]](open("swa.h").read())
