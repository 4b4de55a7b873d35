#!/usr/bin/env python3
"""binding.py - swa.h from another language, here Python's ctypes: a shared library, structs written by hand, and a check
of both that any binding can copy. A layout that is wrong passes in silence (a field left out in front of padding changes
no size), so each struct's size and each field's place is compared with what the C compiler says.

    python3 examples/binding.py     from the top of the repository; wants cc. Last line: how far off a decoder of two
                                    layers is from attention written out in Python"""
import ctypes as C
import math
import os
import random
import subprocess
import sys
import tempfile

I32, I64, F32, PTR = C.c_int32, C.c_int64, C.c_float, C.c_void_p


def struct(name, *fields):
    return type(name, (C.Structure,), {"_fields_": fields})


# In the order of [SECTION 1], none left out. Enums are int.
Window = struct("swa_window", ("kind", C.c_int), ("n_sink", I32), ("left", I64), ("right", I64), ("prefix", I64),
                ("prefix_first", I64))
Shape = struct("swa_shape", *[(n, C.c_int) for n in "n_heads n_kv_heads head_dim v_dim tail_dim v_in_k".split()])
Desc = struct("swa_cache_desc", ("shape", Shape), ("shapes", PTR), ("n_shapes", C.c_int), ("n_layers", C.c_int),
              ("n_seqs", C.c_int), ("k_type", C.c_int), ("v_type", C.c_int), ("tail_type", C.c_int), ("types", PTR),
              ("n_types", C.c_int), ("windows", C.POINTER(Window)), ("n_windows", C.c_int), ("k_rows", PTR),
              ("n_k_rows", C.c_int), ("kv_layer", PTR), ("max_context", I64), ("max_rollback", I64), ("capacity", I64),
              ("isa", C.c_int), ("audit", C.c_int))
Cache = struct("swa_cache", ("mem_", PTR))
Rows = struct("swa_in", ("p", PTR), ("token", I64), ("head", I64))
Out = struct("swa_out", ("p", PTR), ("token", I64), ("head", I64))
Attn = struct("swa_attn", ("q", Rows), ("q_tail", Rows), ("k", Rows), ("k_tail", Rows), ("v", Rows), ("mode", C.c_int),
              ("q_sink", Rows), ("q_sink_tail", Rows), ("out", Out), ("lse", PTR), ("stat", PTR), ("scale", F32),
              ("softcap", F32), ("sink_logits", PTR), ("alibi", PTR), ("bias", PTR), ("bias_token", I64),
              ("bias_head", I64), ("bias_first", I64), ("bias_n", I64), ("bias_by_distance", C.c_int), ("pick", PTR),
              ("pick_token", I64), ("pick_head", I64), ("pick_n", I32), ("pick_block", I32),
              ("pick_window", C.POINTER(Window)), ("compute", C.c_int))
STRUCTS = [Window, Shape, Desc, Cache, Rows, Out, Attn]


def cc(*args):
    subprocess.run([os.environ.get("CC", "cc"), "-I.", *args, "-lm"], check=True)


def build(folder):
    """The library, its own functions alone visible, and bound to each other whatever else the process has loaded."""
    source, lib = os.path.join(folder, "swa.c"), os.path.join(folder, "libswa.so")
    with open(source, "w") as f:
        f.write('#define SWA_IMPLEMENTATION\n#include "swa.h"\n')
    cc("-std=c99", *os.environ.get("CFLAGS", "-O2").split(), "-shared", "-fPIC", "-fvisibility=hidden",
       '-DSWA_API=__attribute__((visibility("default")))', source, "-o", lib)
    return lib


def wrong_layouts(folder, structs):
    """What the compiler says of these structs and fields, where it is something else."""
    said = [(s.__name__, "sizeof(%s)" % s.__name__, C.sizeof(s)) for s in structs]
    said += [("%s.%s" % (s.__name__, f[0]), "offsetof(%s, %s)" % (s.__name__, f[0]), getattr(s, f[0]).offset)
             for s in structs for f in s._fields_]
    source, program = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
    with open(source, "w") as f:
        f.write('#include <stdio.h>\n#include "swa.h"\nint main(void) {\n')
        f.writelines('printf("%%d\\n", (int)%s);\n' % c for _, c, _ in said)
        f.write("return 0; }\n")
    cc(source, "-o", program)
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
    return ["%s: %d here, %s in C" % (name, ours, c) for (name, _, ours), c in zip(said, lines) if ours != int(c)]


def load(path):
    """With argument and result types of every function: without them a window that is returned is a crash."""
    lib, p = C.CDLL(path), C.POINTER
    for name, result, args in [
            ("swa_window_sliding", Window, [I64]), ("swa_cache_bytes", C.c_size_t, [p(Desc)]),
            ("swa_cache_scratch_bytes", C.c_size_t, [p(Desc), C.c_int]),
            ("swa_cache_init", C.c_int, [p(Cache), p(Desc), PTR, C.c_size_t]),
            ("swa_cache_set_scratch", C.c_int, [p(Cache), PTR, C.c_size_t]),
            ("swa_step_one", C.c_int, [p(Cache), C.c_int, I64, I32]),
            ("swa_attend", C.c_int, [p(Cache), C.c_int, p(Attn)]),
            ("swa_attend_explain", C.c_char_p, [p(Cache), C.c_int, p(Attn)])]:
        function = getattr(lib, name)
        function.restype, function.argtypes = result, args
    return lib


def attention(q, k, v, t, h, kv, dim, window):
    """Head h of token t over the heads kv of the keys that it sees, in double."""
    keys = range(max(0, t - window + 1), t + 1)
    score = [sum(a * b for a, b in zip(q[t][h], k[i][kv])) / math.sqrt(dim) for i in keys]
    weight = [math.exp(s - max(score)) for s in score]
    return [sum(w * v[i][kv][d] for w, i in zip(weight, keys)) / sum(weight) for d in range(dim)]


def decode(lib, heads, kv_heads, dim, window, n, layers):
    """A first chunk of half the tokens, then one at a time; the largest error. All buffers are named: what ctypes holds
    no name of is collected while C still reads it."""
    rand = random.Random(1)
    rows = lambda count: [[[rand.gauss(0, 1) for _ in range(dim)] for _ in range(count)] for _ in range(n)]
    flat = lambda x: (F32 * (len(x) * len(x[0]) * dim))(*[number for token in x for head in token for number in head])
    win = lib.swa_window_sliding(window)
    desc = Desc(shape=Shape(n_heads=heads, n_kv_heads=kv_heads, head_dim=dim), n_layers=layers,
                windows=C.pointer(win), n_windows=1, audit=1)
    size, room = lib.swa_cache_bytes(desc), lib.swa_cache_scratch_bytes(desc, 1)
    mem, scratch, cache = C.create_string_buffer(size), C.create_string_buffer(room), Cache()
    assert lib.swa_cache_init(cache, desc, mem, size) == 0 and lib.swa_cache_set_scratch(cache, scratch, room) == 0
    q, k, v = rows(heads), rows(kv_heads), rows(kv_heads)
    worst, pos = 0.0, 0
    while pos < n:
        count = n // 2 if pos == 0 else 1
        here = slice(pos, pos + count)
        assert lib.swa_step_one(cache, 0, pos, count) == 0
        for layer in range(layers):      # the same rows in each
            a, cq, ck, cv = Attn(), flat(q[here]), flat(k[here]), flat(v[here])
            out = (F32 * len(cq))()
            a.q.p, a.k.p, a.v.p, a.out.p = (C.addressof(x) for x in (cq, ck, cv, out))
            if lib.swa_attend(cache, layer, a) != 0:
                sys.exit(lib.swa_attend_explain(cache, layer, a).decode())
            for i in range(count * heads):
                t, h = pos + i // heads, i % heads
                want = attention(q, k, v, t, h, h * kv_heads // heads, dim, window)
                worst = max([worst] + [abs(x - y) for x, y in zip(want, out[i * dim:(i + 1) * dim])])
        pos += count
    return worst


def main():
    with tempfile.TemporaryDirectory() as folder:
        wrong = wrong_layouts(folder, STRUCTS)
        if wrong:
            sys.exit("\n".join(wrong))
        worst = decode(load(build(folder)), heads=4, kv_heads=2, dim=16, window=8, n=24, layers=2)
        # the check itself: two fields that changed places are seen
        fields = list(Attn._fields_)
        at = [f[0] for f in fields].index("scale")
        fields[at], fields[at + 1] = fields[at + 1], fields[at]
        assert len(wrong_layouts(folder, [struct("swa_attn", *fields)])) == 2
    print("layouts agree; largest error %.1e" % worst)
    return worst > 1e-5


if __name__ == "__main__":
    sys.exit(main())
