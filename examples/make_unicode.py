#!/usr/bin/env python3
"""Writes unicode.h: which characters are letters, marks and numbers, for the pre-tokenizers of split.h. Standard library
only; the version of Unicode is that of the Python that runs it.

usage: make_unicode.py > unicode.h
"""
import unicodedata

OTHER, UPPER, LOWER, LETTER, MARK, NUMBER, EVEN_UPPER, ODD_UPPER = range(8)


def kind(code):
    category = unicodedata.category(chr(code))
    if category in ('Lu', 'Lt'):
        return UPPER
    if category == 'Ll':
        return LOWER
    return {'L': LETTER, 'M': MARK, 'N': NUMBER}.get(category[0], OTHER)


def ranges():
    """[first code, kind]; upper and lower in turns are one range, which halves the table."""
    kinds = [kind(code) for code in range(0x110000)]
    out, at = [], 0
    while at < len(kinds):
        end = at
        while end + 1 < len(kinds) and {kinds[end], kinds[end + 1]} == {UPPER, LOWER}:
            end += 1
        if end - at >= 3:
            out.append((at, EVEN_UPPER if (kinds[at] == UPPER) == (at % 2 == 0) else ODD_UPPER))
            at = end + 1
            continue
        if not out or out[-1][1] != kinds[at]:
            out.append((at, kinds[at]))
        at += 1
    return out


def main():
    table = ranges()
    print(f'''/* unicode.h - kinds of characters, Unicode {unicodedata.unidata_version}. Written by make_unicode.py; do not edit. */
/* clang-format off */
#ifndef UNICODE_H_INCLUDED
#define UNICODE_H_INCLUDED
#include <stdint.h>

enum {{ UNICODE_OTHER, UNICODE_UPPER, UNICODE_LOWER, UNICODE_LETTER, UNICODE_MARK, UNICODE_NUMBER,
       UNICODE_EVEN_UPPER, UNICODE_ODD_UPPER }};

/* First code of a range * 8 + its kind; a range ends where the next begins. */
static const uint32_t unicode_ranges[{len(table)}] =
{{''')
    line = '   '
    for code, k in table:
        word = f' {code * 8 + k},'
        if len(line) + len(word) > 118:
            print(line)
            line = '   '
        line += word
    print(line)
    print('''};
#endif /* UNICODE_H_INCLUDED */''')


main()
