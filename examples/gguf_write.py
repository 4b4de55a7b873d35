"""Writes GGUF files: what make_gguf.py, make_gguf_mla.py and bench/make_model.py share. Standard library only."""
import struct

SPACE = '\u2581'                   # how GGUF vocabularies of the "llama" kind write a space
U32, F32, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
ALIGNMENT = 32


def string(s):
    raw = s.encode('utf-8')
    return struct.pack('<Q', len(raw)) + raw


def value(kind, v):
    if kind == STRING:
        return string(v)
    return struct.pack({U32: '<I', I32: '<i', F32: '<f', BOOL: '<?'}[kind], v)


def pair(key, kind, v):
    return string(key) + struct.pack('<I', kind) + value(kind, v)


def array(key, kind, items):
    head = string(key) + struct.pack('<IIQ', ARRAY, kind, len(items))
    return head + b''.join(value(kind, v) for v in items)


def padding(n):
    return bytes(-n % ALIGNMENT)


def write(path, fields, tensors):
    """tensors: [(name, dims with the rows first as in C, type, bytes of its data, function that yields them)]"""
    infos, at = [], 0
    for name, dims, kind, size, _ in tensors:
        infos.append(string(name) + struct.pack('<I', len(dims)) + struct.pack('<%dQ' % len(dims), *reversed(dims))
                     + struct.pack('<IQ', kind, at))
        at += size + len(padding(size))
    head = struct.pack('<4sIQQ', b'GGUF', 3, len(tensors), len(fields)) + b''.join(fields) + b''.join(infos)
    head += padding(len(head))
    with open(path, 'wb') as f:
        f.write(head)
        for _, _, _, size, data in tensors:
            for part in data():
                f.write(part)
            f.write(padding(size))
    print(f'{path}: {len(fields)} keys, {len(tensors)} tensors, {len(head) + at} bytes')


def floats(name, dims, kind, values):
    """A tensor for write(), of F32 (kind 0) or F16 (kind 1)."""
    data = struct.pack('<%d%s' % (len(values), 'fe'[kind]), *values)
    return name, dims, kind, len(data), lambda: [data]
