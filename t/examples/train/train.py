#!/usr/bin/env python3
"""Trains a small Mistral-architecture model with a sliding window, on one CPU core. Needs numpy and PyTorch.

usage: OMP_NUM_THREADS=1 train.py text.txt outprefix seconds [key=value ...]
       (the shipped model: train.py austen.txt austen 1200 merges=253 B=8)

Writes outprefix.bin (weights), outprefix.json (configuration) and outprefix_tok.bin (tokenizer) for make_gguf.py.
Token ids: 0 unk, 1 bos, 2 eos, byte b is b + 3, then byte-pair merges from 259 on.
The keys and their defaults stand in C below: dim, hidden, L layers, H query heads, KV heads, W window, T training
length, B batch, lr, theta (RoPE base), merges, maxseq (length of the RoPE tables in the file).
"""
import collections
import json
import math
import re
import struct
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

C = dict(dim=128, hidden=320, L=4, H=4, KV=2, W=64, T=256, B=16, lr=3e-3, theta=10000.0, merges=0, maxseq=2048)
WORDS = r" ?[A-Za-z']+|\n| ?[^A-Za-z'\n ]+| +"       # merges happen inside these only


# ---- text and tokens

def read_text(path):
    """One paragraph a line, ASCII, spaces collapsed."""
    raw = open(path, 'rb').read().decode('utf8', 'ignore').encode('ascii', 'ignore').decode()
    paragraphs = [' '.join(p.split()) for p in raw.replace('\r', '').split('\n\n')]
    return '\n'.join(p for p in paragraphs if p) + '\n'


def replace_pair(ids, left, right, new):
    out, i = [], 0
    while i < len(ids):
        if i + 1 < len(ids) and ids[i] == left and ids[i + 1] == right:
            out.append(new)
            i += 2
        else:
            out.append(ids[i])
            i += 1
    return out


def tokenize(text, n_merges):
    """Greedy byte-pair merges: again and again the commonest pair becomes a token. Returns vocabulary and ids."""
    vocab = [b'<unk>', b'\n<s>\n', b'\n</s>\n'] + [bytes([i]) for i in range(256)]
    counts = collections.Counter(re.findall(WORDS, text))
    words = {w: [b + 3 for b in w.encode()] for w in counts}
    for _ in range(n_merges):
        pairs = collections.Counter()
        for w, n in counts.items():
            for pair in zip(words[w], words[w][1:]):
                pairs[pair] += n
        (left, right), _ = pairs.most_common(1)[0]
        for w, ids in words.items():
            if left in ids:
                words[w] = replace_pair(ids, left, right, len(vocab))
        vocab.append(vocab[left] + vocab[right])
    ids = []
    for w in re.findall(WORDS, text):
        ids += words[w]
    return vocab, np.array(ids, np.int32)


# ---- model

def rope_tables(n, head_dim):
    freq = 1.0 / (C['theta'] ** (torch.arange(0, head_dim, 2).float() / head_dim))
    angle = torch.outer(torch.arange(n).float(), freq)
    return angle.cos(), angle.sin()


def rope(x, cos, sin):
    """x [batch, token, head, dim], pairs (2i, 2i+1)"""
    x0, x1 = x[..., 0::2], x[..., 1::2]
    cos, sin = cos[None, :, None], sin[None, :, None]
    return torch.stack((x0 * cos - x1 * sin, x0 * sin + x1 * cos), -1).flatten(-2)


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.w = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.w


def linear(n_in, n_out):
    return nn.Linear(n_in, n_out, bias=False)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        dim, hidden = C['dim'], C['hidden']
        self.head_dim = dim // C['H']
        kv_dim = C['KV'] * self.head_dim
        self.n1, self.n2 = Norm(dim), Norm(dim)
        self.wq, self.wk, self.wv = linear(dim, dim), linear(dim, kv_dim), linear(dim, kv_dim)
        self.wo = linear(dim, dim)
        self.w1, self.w2, self.w3 = linear(dim, hidden), linear(hidden, dim), linear(dim, hidden)

    def attend_masked(self, q, k, v, W):
        """The definition: scores of all pairs, those outside the window hidden. W = 0: all earlier tokens."""
        T = q.shape[1]
        i, j = torch.arange(T)[:, None], torch.arange(T)[None]
        hidden = (j > i) | ((j <= i - W) if W else False)
        p = torch.einsum('btkgd,bskd->bkgts', q, k).masked_fill(hidden, -1e9).softmax(-1)
        return torch.einsum('bkgts,bskd->btkgd', p, v)

    def attend_blocked(self, q, k, v, W):
        """The same numbers for T a multiple of W: a block of W queries sees its own W keys and the W before."""
        B, T, K, g, d = q.shape
        n = T // W

        def two_blocks(z):
            z = z.view(B, n, W, K, d).transpose(2, 3)
            before = F.pad(z, (0, 0, 0, 0, 0, 0, 1, 0))[:, :-1]
            return torch.cat((before, z), 3).unsqueeze(3)

        scores = q.view(B, n, W, K, g, d).permute(0, 1, 3, 4, 2, 5) @ two_blocks(k).transpose(-1, -2)
        i, j = torch.arange(W)[:, None] + W, torch.arange(2 * W)[None]
        hidden = (j > i) | (j <= i - W)
        hidden = torch.stack([hidden | (j < W)] + [hidden] * (n - 1)).view(1, n, 1, 1, W, 2 * W)
        out = scores.masked_fill(hidden, -1e9).softmax(-1) @ two_blocks(v)
        return out.permute(0, 1, 4, 2, 3, 5)

    def forward(self, x, cos, sin, W):
        B, T, dim = x.shape
        H, K, d = C['H'], C['KV'], self.head_dim
        y = self.n1(x)
        q = rope(self.wq(y).view(B, T, H, d), cos, sin).view(B, T, K, H // K, d) * d ** -0.5
        k = rope(self.wk(y).view(B, T, K, d), cos, sin)
        v = self.wv(y).view(B, T, K, d)
        blocked = W and T % W == 0 and T > W
        attend = self.attend_blocked if blocked else self.attend_masked
        x = x + self.wo(attend(q, k, v, W).reshape(B, T, dim))
        y = self.n2(x)
        return x + self.w2(F.silu(self.w1(y)) * self.w3(y))


class Model(nn.Module):
    def __init__(self, n_vocab):
        super().__init__()
        self.emb = nn.Embedding(n_vocab, C['dim'])
        self.bl = nn.ModuleList(Block() for _ in range(C['L']))
        self.nf = Norm(C['dim'])
        for name, p in self.named_parameters():
            if p.dim() > 1:
                residual = 'wo' in name or 'w2' in name
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * C['L']) if residual else 0.02)

    def forward(self, ids, W):
        cos, sin = rope_tables(ids.shape[1], C['dim'] // C['H'])
        x = self.emb(ids)
        for block in self.bl:
            x = block(x, cos, sin, W)
        return self.nf(x) @ self.emb.weight.T


# ---- training

def draw_batch(ids, starts):
    """Half of the rows begin anywhere, half begin with bos and a paragraph."""
    T = C['T']
    x = np.empty((C['B'], T + 1), np.int64)
    for r in range(C['B']):
        if r % 2:
            at = np.random.choice(starts)
            x[r, 0], x[r, 1:] = 1, ids[at:at + T]
        else:
            at = np.random.randint(len(ids) - T - 1)
            x[r] = ids[at:at + T + 1]
    x = torch.from_numpy(x)
    return x[:, :-1].contiguous(), x[:, 1:].contiguous()


@torch.no_grad()
def evaluate(model, ids, W, T, n):
    """Mean loss over n stretches of T tokens, of the later half of each."""
    total = 0.0
    for i in range(n):
        at = i * (len(ids) - T - 1) // n
        x = torch.from_numpy(ids[at:at + T + 1].astype(np.int64))[None]
        total += F.cross_entropy(model(x[:, :-1], W)[0], x[0, 1:], reduction='none')[T // 2:].mean().item()
    return total / n


def train(model, ids, held_out, seconds):
    """Returns the number of steps. The learning rate follows a cosine over the time given."""
    starts = np.flatnonzero(ids == ord('\n') + 3) + 1
    starts = starts[starts < len(ids) - C['T'] - 2]
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{'params': matrices, 'weight_decay': 0.1}, {'params': vectors, 'weight_decay': 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=C['lr'], betas=(0.9, 0.95))
    begun, steps, mean, next_line = time.time(), 0, None, 30
    while True:
        elapsed = time.time() - begun
        if elapsed >= seconds:
            return steps
        cosine = 0.5 * (1 + math.cos(math.pi * elapsed / seconds))
        for group in optimizer.param_groups:
            group['lr'] = C['lr'] * min(1, (steps + 1) / 100) * (0.05 + 0.95 * cosine)
        x, y = draw_batch(ids, starts)
        loss = F.cross_entropy(model(x, C['W']).view(-1, model.emb.num_embeddings), y.view(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps += 1
        mean = loss.item() if mean is None else 0.98 * mean + 0.02 * loss.item()
        if elapsed > next_line:
            next_line += 60
            print(f'{elapsed:6.0f} s, {steps} steps, loss {mean:.3f}, held out '
                  f'{evaluate(model, held_out, C["W"], 512, 8):.3f}', flush=True)


# ---- export

def export(model, vocab, out):
    weights = {k: v.detach().numpy().astype('<f4') for k, v in model.state_dict().items()}
    with open(out + '.bin', 'wb') as f:
        f.write(struct.pack('<7i', C['dim'], C['hidden'], C['L'], C['H'], C['KV'], len(vocab), C['maxseq']))
        f.write(weights['emb.weight'].tobytes())
        for name in ('n1.w', 'wq.weight', 'wk.weight', 'wv.weight', 'wo.weight', 'n2.w', 'w1.weight', 'w2.weight',
                     'w3.weight'):
            for layer in range(C['L']):
                f.write(weights[f'bl.{layer}.{name}'].tobytes())
        f.write(weights['nf.w'].tobytes())
        for table in rope_tables(C['maxseq'], C['dim'] // C['H']):
            f.write(table.numpy().astype('<f4').tobytes())
    pieces = list(vocab)
    for b in range(256):
        if not 32 <= b < 127:
            pieces[b + 3] = b'<0x%02X>' % b
    with open(out + '_tok.bin', 'wb') as f:
        f.write(struct.pack('<i', max(map(len, pieces))))
        for i, piece in enumerate(pieces):
            f.write(struct.pack('<fi', 0.0 if i < 259 else -float(i - 258), len(piece)) + piece)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    torch.manual_seed(1337)
    np.random.seed(1337)
    source, out, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    for setting in sys.argv[4:]:
        key, value = setting.split('=')
        C[key] = type(C[key])(value)
    text = read_text(source)
    vocab, ids = tokenize(text, C['merges'])
    n_held_out = len(ids) // 25
    ids, held_out = ids[:-n_held_out], ids[-n_held_out:]
    bytes_per_token = len(text) / (len(ids) + n_held_out)
    model = Model(len(vocab))
    print(f'{len(text)} bytes, {len(vocab)} tokens, {bytes_per_token:.2f} bytes per token, '
          f'{sum(p.numel() for p in model.parameters())} parameters', C, flush=True)
    steps = train(model, ids, held_out, seconds)
    for W in (C['W'], C['W'] // 2, C['W'] * 2, 0):
        short, long = evaluate(model, held_out, W, 512, 16), evaluate(model, held_out, W, 2048, 8)
        print(f'held-out loss per token, window {W or "none"}: {short:.4f} at length 512, {long:.4f} at 2048')
    export(model, vocab, out)
    json.dump(dict(C, vocab=len(vocab), iters=steps, seconds=seconds, bytes_per_token=bytes_per_token),
              open(out + '.json', 'w'))


main()
