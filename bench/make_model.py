#!/usr/bin/env python3
"""Writes a model of random weights in the shapes of Mistral 7B, to measure speed with. Standard library only.

usage: make_model.py out.gguf TYPE [LAYERS [DIM]]      TYPE: f32 f16 bf16 q8_0 q4_0 q4_k q5_k q6_k; 4 layers of 4096

The feed-forward half has 3.5 times DIM numbers, heads have 128 and four share one of keys and values, the window is 4096,
the vocabulary 32,000 words, and its matrix is both embedding and output. Scales are small, so that all stays finite.
"""
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'examples'))
from gguf_write import BYTE, F32, I32, NORMAL, STRING, U32, array, floats, pair, write

# numbers and bytes of a block, GGUF's number of the type, and what has to stand at some places: [(byte, bytes)]
HALF = struct.pack('<e', 2.0 ** -12)
TYPES = {
    'f32': (1, 4, 0, [(2, b'\x00\x3c')]), 'f16': (1, 2, 1, [(1, b'\x24')]), 'bf16': (1, 2, 30, [(1, b'\x3c')]),
    'q4_0': (32, 18, 2, [(0, HALF)]), 'q8_0': (32, 34, 8, [(0, HALF)]),
    'q4_k': (256, 144, 12, [(0, HALF + HALF)]), 'q5_k': (256, 176, 13, [(0, HALF + HALF)]),
    'q6_k': (256, 210, 14, [(208, HALF)]),
}
VOCAB, HEAD, PIECE = 32000, 128, 4096           # PIECE: blocks that are made once and then repeated


def matrix(name, rows, cols, kind):
    numbers, size, number, fixed = TYPES[kind]
    total = rows * cols // numbers * size

    def data():
        piece = bytearray(random.randbytes(PIECE * size))
        for at, what in fixed:
            for i in range(len(what)):
                piece[at + i::size] = bytes([what[i]]) * PIECE
        for _ in range(total // len(piece)):
            yield piece
        yield piece[:total % len(piece)]
    return name, (rows, cols), number, total, data


def metadata(dim, hidden, layers):
    names = ['<0x%02X>' % i if i < 256 else 'w%d' % i for i in range(VOCAB)]
    return [
        pair('general.architecture', STRING, 'llama'),
        pair('llama.context_length', U32, 32768),
        pair('llama.embedding_length', U32, dim),
        pair('llama.block_count', U32, layers),
        pair('llama.feed_forward_length', U32, hidden),
        pair('llama.attention.head_count', U32, dim // HEAD),
        pair('llama.attention.head_count_kv', U32, dim // HEAD // 4),
        pair('llama.attention.layer_norm_rms_epsilon', F32, 1e-5),
        pair('llama.attention.sliding_window', U32, 4096),
        pair('tokenizer.ggml.model', STRING, 'llama'),
        array('tokenizer.ggml.tokens', STRING, names),
        array('tokenizer.ggml.scores', F32, [0.0] * VOCAB),
        array('tokenizer.ggml.token_type', I32, [BYTE] * 256 + [NORMAL] * (VOCAB - 256)),
    ]


def main():
    if not 3 <= len(sys.argv) <= 5 or sys.argv[2] not in TYPES:
        sys.exit(__doc__)
    kind = sys.argv[2]
    layers, dim = [int(v) for v in sys.argv[3:] + ['4', '4096'][len(sys.argv) - 3:]]
    if layers < 1 or dim < 512 or dim % 512:
        sys.exit('LAYERS from 1 on, DIM a multiple of 512')
    hidden, kv = dim * 7 // 2, dim // 4
    random.seed(1)
    shapes = [('attn_q', dim, dim), ('attn_k', kv, dim), ('attn_v', kv, dim), ('attn_output', dim, dim),
              ('ffn_gate', hidden, dim), ('ffn_up', hidden, dim), ('ffn_down', dim, hidden)]
    tensors = [matrix('token_embd.weight', VOCAB, dim, kind), floats('output_norm.weight', (dim,), 0, [1.0] * dim)]
    for layer in range(layers):
        for name in ('attn_norm', 'ffn_norm'):
            tensors.append(floats(f'blk.{layer}.{name}.weight', (dim,), 0, [1.0] * dim))
        tensors += [matrix(f'blk.{layer}.{name}.weight', rows, cols, kind) for name, rows, cols in shapes]
    write(sys.argv[1], metadata(dim, hidden, layers), tensors)


main()
