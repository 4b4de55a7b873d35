#!/usr/bin/env python3
"""Packs what train/train.py exports (weights, configuration, tokenizer) into one GGUF file. Standard library only.

usage: make_gguf.py model.bin model.json model_tok.bin out.gguf [f32|f16]      (f16 is the default)

model.bin      7 int32 (dim, hidden, layers, heads, kv_heads, vocab, max_seq), then float32 tensors, each kind for
               all layers in a row: embedding, attention norm, wq, wk, wv, wo, ffn norm, w1, w2, w3, final norm
model.json     the configuration; the window ("W") and the RoPE base ("theta") stand only here
model_tok.bin  int32 longest piece, then per token: float32 score, int32 length, bytes.
               Ids: 0 unk, 1 bos, 2 eos, byte b is b + 3, merges in order from 259

The file uses the names that llama.cpp writes for Mistral (architecture llama). q and k rows are NOT permuted:
llama.cpp permutes Hugging Face weights because it rotates neighbouring pairs (2i, 2i+1), and these weights were
trained that way. Matrices are F16 (or F32), norms F32. The output matrix is the embedding, so the file holds no
output.weight.
"""
import json
import struct
import sys

from gguf_write import BOOL, BYTE, CONTROL, F32, I32, NORMAL, SPACE, STRING, U32, UNKNOWN
from gguf_write import array, floats, pair, write

FIRST_BYTE, FIRST_MERGE = 3, 259
CONTEXT = 32768                    # no property of the weights: with a window any length works, see train/README.md


def read_tokens(path):
    """[vocab] the bytes each token stands for; merge tokens only, bytes are known from their ids."""
    data = open(path, 'rb').read()
    pieces, at = [], 4
    while at < len(data):
        _, n = struct.unpack_from('<fi', data, at)
        pieces.append(data[at + 8:at + 8 + n])
        at += 8 + n
    for b in range(256):
        pieces[FIRST_BYTE + b] = bytes([b])
    return pieces


def merge(ids, left, right, new):
    out, i = [], 0
    while i < len(ids):
        if ids[i:i + 2] == [left, right]:
            out.append(new)
            i += 2
        else:
            out.append(ids[i])
            i += 1
    return out


def recover_merges(pieces):
    """The export lists what each merge makes, not of which two tokens. Applying all earlier merges to the bytes of
    a piece leaves exactly these two."""
    merges = []
    for new in range(FIRST_MERGE, len(pieces)):
        ids = [FIRST_BYTE + b for b in pieces[new]]
        for k, (left, right) in enumerate(merges):
            ids = merge(ids, left, right, FIRST_MERGE + k)
        if len(ids) != 2:
            sys.exit(f'token {new} {pieces[new]!r} is not a merge of two earlier tokens')
        merges.append(tuple(ids))
    return merges


def vocabulary(pieces):
    """Names and kinds as GGUF wants them: printable pieces as text, other bytes as <0xHH>."""
    names, kinds = ['<unk>', '<s>', '</s>'], [UNKNOWN, CONTROL, CONTROL]
    for i, piece in enumerate(pieces[FIRST_BYTE:], FIRST_BYTE):
        if all(32 <= b < 127 for b in piece):
            names.append(piece.decode('ascii').replace(' ', SPACE))
            kinds.append(NORMAL)
        elif i < FIRST_MERGE:
            names.append('<0x%02X>' % piece[0])
            kinds.append(BYTE)
        else:
            sys.exit(f'token {i}: a merge of unprintable bytes has no name in this vocabulary')
    return names, kinds


def metadata(config, header, pieces, merges, matrix_type):
    dim, hidden, layers, heads, kv_heads, vocab, _ = header
    names, kinds = vocabulary(pieces)
    scores = [0.0] * FIRST_MERGE + [-1.0 - k for k in range(len(merges))]
    return [
        pair('general.architecture', STRING, 'llama'),
        pair('general.name', STRING, 'austen-w%d' % config['W']),
        pair('general.description', STRING, 'Mistral architecture trained with a sliding window of %d on the '
             'novels of Jane Austen (public domain)' % config['W']),
        pair('general.file_type', U32, matrix_type),
        pair('llama.vocab_size', U32, vocab),
        pair('llama.context_length', U32, CONTEXT),
        pair('llama.embedding_length', U32, dim),
        pair('llama.block_count', U32, layers),
        pair('llama.feed_forward_length', U32, hidden),
        pair('llama.attention.head_count', U32, heads),
        pair('llama.attention.head_count_kv', U32, kv_heads),
        pair('llama.attention.layer_norm_rms_epsilon', F32, 1e-5),
        pair('llama.attention.sliding_window', U32, config['W']),
        pair('llama.rope.dimension_count', U32, dim // heads),
        pair('llama.rope.freq_base', F32, config['theta']),
        pair('tokenizer.ggml.model', STRING, 'llama'),
        array('tokenizer.ggml.tokens', STRING, names),
        array('tokenizer.ggml.scores', F32, scores),
        array('tokenizer.ggml.token_type', I32, kinds),
        array('tokenizer.ggml.merges', STRING, [names[a] + ' ' + names[b] for a, b in merges]),
        pair('tokenizer.ggml.bos_token_id', U32, 1),
        pair('tokenizer.ggml.eos_token_id', U32, 2),
        pair('tokenizer.ggml.unknown_token_id', U32, 0),
        pair('tokenizer.ggml.add_bos_token', BOOL, True),
        pair('tokenizer.ggml.add_eos_token', BOOL, False),
        pair('tokenizer.ggml.add_space_prefix', BOOL, False),
    ]


def read_weights(data, header):
    """[(name, dims, floats)], rows first in dims as in C; blk tensors sorted by layer."""
    dim, hidden, layers, heads, kv_heads, vocab, _ = header
    kv_dim = dim // heads * kv_heads
    kinds = [('attn_norm', (dim,)), ('attn_q', (dim, dim)), ('attn_k', (kv_dim, dim)), ('attn_v', (kv_dim, dim)),
             ('attn_output', (dim, dim)), ('ffn_norm', (dim,)), ('ffn_gate', (hidden, dim)),
             ('ffn_down', (dim, hidden)), ('ffn_up', (hidden, dim))]
    at = 28

    def take(dims):
        nonlocal at
        n = dims[0] * (dims[1] if len(dims) == 2 else 1)
        values = struct.unpack_from('<%df' % n, data, at)
        at += 4 * n
        return values

    embedding = ('token_embd.weight', (vocab, dim), take((vocab, dim)))
    blocks = [[] for _ in range(layers)]
    for name, dims in kinds:
        for layer in range(layers):
            blocks[layer].append((f'blk.{layer}.{name}.weight', dims, take(dims)))
    final_norm = ('output_norm.weight', (dim,), take((dim,)))
    return [embedding] + [t for block in blocks for t in block] + [final_norm]


def main():
    if len(sys.argv) not in (5, 6) or sys.argv[5:] not in ([], ['f16'], ['f32']):
        sys.exit(__doc__)
    matrix_type = 0 if sys.argv[5:] == ['f32'] else 1
    data = open(sys.argv[1], 'rb').read()
    config = json.load(open(sys.argv[2]))
    pieces = read_tokens(sys.argv[3])
    header = struct.unpack_from('<7i', data)
    if header[5] != len(pieces):
        sys.exit(f'the model has {header[5]} tokens, the tokenizer {len(pieces)}')
    fields = metadata(config, header, pieces, recover_merges(pieces), matrix_type)
    tensors = [floats(name, dims, matrix_type if len(dims) == 2 else 0, values)
               for name, dims, values in read_weights(data, header)]
    write(sys.argv[4], fields, tensors)


main()
