#!/usr/bin/env python3
"""Extracts Jane Austen's six novels (public domain) from Debian's package r-cran-janeaustenr, without R.

usage: austen_extract.py .../janeaustenr/data/Rdata.rdb austen.txt

An .rdb file is a row of records: the length of the raw data (4 bytes, big-endian), for some a byte that names the
compression, then zlib, bzip2 or xz data. Each record unpacks to R's XDR serialization; of that only vectors of
strings are looked for, and a vector of more than 1,000 strings is a novel, one string a line.
"""
import bz2
import lzma
import struct
import sys
import zlib

STRING_VECTOR, STRING = 16, 9         # R's types STRSXP and CHARSXP, in the low byte of a big-endian word


def read_vector(data, at):
    """The strings of the vector at `at` and where it ends, or None if there is no such vector."""
    count, = struct.unpack_from('>i', data, at + 4)
    strings, at = [], at + 8
    if count < 1:
        return None
    for _ in range(count):
        if at + 8 > len(data):
            return None
        flags, length = struct.unpack_from('>Ii', data, at)
        if flags & 0xff != STRING or not -1 <= length <= 10000:
            return None
        at += 8
        strings.append(data[at:at + max(length, 0)].decode('utf-8', 'replace'))
        at += max(length, 0)
    return strings, at


def longest_vector(data):
    best, at = [], 0
    while at + 8 <= len(data):
        found = None
        if struct.unpack_from('>I', data, at)[0] & 0xff == STRING_VECTOR:
            found = read_vector(data, at)
        if found:
            best = max(best, found[0], key=len)
            at = found[1]
        else:
            at += 1
    return best


def unpack(blob, at):
    """The raw data of the record at `at` and where the record ends."""
    raw_length, = struct.unpack_from('>I', blob, at)
    raw_xz = [{'id': lzma.FILTER_LZMA2, 'preset': 6}]
    kinds = [(4, None, zlib.decompressobj), (5, b'2', bz2.BZ2Decompressor),
             (5, b'Z', lambda: lzma.LZMADecompressor(format=lzma.FORMAT_RAW, filters=raw_xz))]
    for skip, mark, make in kinds:
        if mark and blob[at + 4:at + 5] != mark:
            continue
        decoder = make()
        try:
            data = decoder.decompress(blob[at + skip:])
        except (zlib.error, lzma.LZMAError, OSError):
            continue
        if len(data) == raw_length:
            return data, len(blob) - len(decoder.unused_data)
    sys.exit(f'cannot read the record at byte {at}')


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    blob = open(sys.argv[1], 'rb').read()
    novels, at = [], 0
    while at + 4 < len(blob):
        data, at = unpack(blob, at)
        lines = longest_vector(data)
        if len(lines) > 1000:
            novels.append('\n'.join(lines))
            print(f'{len(lines)} lines: {lines[0]}')
    with open(sys.argv[2], 'w', encoding='utf-8') as f:
        f.write('\n\n\n'.join(novels))


main()
