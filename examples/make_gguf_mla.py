#!/usr/bin/env python3
"""Packs what train/train_mla.py exports into one GGUF file. Standard library only.

usage: make_gguf_mla.py model.npz out.gguf [f32|f16]      (f16 is the default)

model.npz holds one float32 array per tensor (cfg: the configuration as JSON text), in the layouts of DeepSeek's own
files: q_b has rows per head [nope | rope], kv_a rows [kv_lora | rope], kv_b rows per head [nope | v]. The file uses the
names that llama.cpp writes for this architecture (deepseek2). Matrices are F16 (or F32), norms F32. The output matrix
is the embedding, so the file holds no output.weight. The vocabulary is bytes: 0 unk, 1 bos, 2 eos, byte b is b + 3.
"""
import ast
import json
import struct
import sys
import zipfile

from gguf_write import BOOL, BYTE, CONTROL, F32, I32, NORMAL, SPACE, STRING, U32, UNKNOWN
from gguf_write import array, floats, pair, write

CONTEXT = 32768                    # no property of the weights: with a window any length works


def read_array(data):
    """(dtype, shape, bytes) of one .npy file, format version 1."""
    if data[:8] != b'\x93NUMPY\x01\x00':
        sys.exit('an array of the model is not in npy format 1')
    size = struct.unpack_from('<H', data, 8)[0]
    head = ast.literal_eval(data[10:10 + size].decode('latin-1'))
    if head['fortran_order']:
        sys.exit('an array of the model is stored column by column')
    return head['descr'], head['shape'], data[10 + size:]


def read_model(path):
    """The configuration, and {name: (shape, floats)}."""
    config, tensors = None, {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            kind, shape, raw = read_array(archive.read(name))
            if name == 'cfg.npy':
                config = json.loads(raw.decode('utf-32-le').rstrip('\0'))
            elif kind == '<f4':
                tensors[name[:-len('.npy')]] = (shape, struct.unpack('<%df' % (len(raw) // 4), raw))
            else:
                sys.exit(f'{name} is not float32')
    return config, tensors


def metadata(c, matrix_type):
    names, kinds = ['<unk>', '<s>', '</s>'], [UNKNOWN, CONTROL, CONTROL]
    for b in range(256):
        printable = 32 <= b < 127
        names.append(chr(b).replace(' ', SPACE) if printable else '<0x%02X>' % b)
        kinds.append(NORMAL if printable else BYTE)
    return [
        pair('general.architecture', STRING, 'deepseek2'),
        pair('general.name', STRING, 'austen-mla'),
        pair('general.description', STRING, 'DeepSeek architecture (multi-head latent attention) trained on the '
             'novels of Jane Austen (public domain), in stretches of %d bytes' % c['T']),
        pair('general.file_type', U32, matrix_type),
        pair('deepseek2.vocab_size', U32, len(names)),
        pair('deepseek2.context_length', U32, CONTEXT),
        pair('deepseek2.embedding_length', U32, c['dim']),
        pair('deepseek2.block_count', U32, c['L']),
        pair('deepseek2.feed_forward_length', U32, c['hidden']),
        pair('deepseek2.attention.head_count', U32, c['H']),
        pair('deepseek2.attention.head_count_kv', U32, c['H']),
        pair('deepseek2.attention.layer_norm_rms_epsilon', F32, 1e-5),
        pair('deepseek2.attention.q_lora_rank', U32, c['ql']),
        pair('deepseek2.attention.kv_lora_rank', U32, c['kvl']),
        pair('deepseek2.attention.key_length', U32, c['nope'] + c['rope']),
        pair('deepseek2.attention.value_length', U32, c['vd']),
        pair('deepseek2.attention.sliding_window', U32, c['T']),
        pair('deepseek2.rope.dimension_count', U32, c['rope']),
        pair('deepseek2.rope.freq_base', F32, c['theta']),
        pair('deepseek2.leading_dense_block_count', U32, c['L']),
        pair('deepseek2.expert_count', U32, 0),
        pair('deepseek2.expert_used_count', U32, 0),
        pair('deepseek2.expert_shared_count', U32, 1),
        pair('deepseek2.expert_feed_forward_length', U32, c['hidden']),
        pair('deepseek2.expert_weights_scale', F32, 1.0),
        pair('deepseek2.rope.scaling.yarn_log_multiplier', F32, 0.1),
        pair('tokenizer.ggml.model', STRING, 'llama'),
        array('tokenizer.ggml.tokens', STRING, names),
        array('tokenizer.ggml.scores', F32, [0.0] * len(names)),
        array('tokenizer.ggml.token_type', I32, kinds),
        pair('tokenizer.ggml.bos_token_id', U32, 1),
        pair('tokenizer.ggml.eos_token_id', U32, 2),
        pair('tokenizer.ggml.unknown_token_id', U32, 0),
        pair('tokenizer.ggml.add_bos_token', BOOL, True),
        pair('tokenizer.ggml.add_eos_token', BOOL, False),
        pair('tokenizer.ggml.add_space_prefix', BOOL, False),
    ]


def names_in_file(layers):
    """[(name in the GGUF file, name in the model)]"""
    kinds = [('attn_norm', 'n1.w'), ('attn_q_a', 'q_a.weight'), ('attn_q_a_norm', 'nq.w'), ('attn_q_b', 'q_b.weight'),
             ('attn_kv_a_mqa', 'kv_a.weight'), ('attn_kv_a_norm', 'nkv.w'), ('attn_kv_b', 'kv_b.weight'),
             ('attn_output', 'wo.weight'), ('ffn_norm', 'n2.w'), ('ffn_gate', 'w1.weight'), ('ffn_down', 'w2.weight'),
             ('ffn_up', 'w3.weight')]
    blocks = [(f'blk.{i}.{a}.weight', f'bl.{i}.{b}') for i in range(layers) for a, b in kinds]
    return [('token_embd.weight', 'emb.weight')] + blocks + [('output_norm.weight', 'nf.w')]


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[3:] not in ([], ['f16'], ['f32']):
        sys.exit(__doc__)
    matrix_type = 0 if sys.argv[3:] == ['f32'] else 1
    config, tensors = read_model(sys.argv[1])
    fields = metadata(config, matrix_type)
    named = [(name,) + tensors[source] for name, source in names_in_file(config['L'])]
    write(sys.argv[2], fields, [floats(name, shape, matrix_type if len(shape) == 2 else 0, values)
                                for name, shape, values in named])


main()
