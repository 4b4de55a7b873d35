#!/usr/bin/env python3
"""Trains a small DeepSeek-architecture model (multi-head latent attention) on bytes, on one CPU core. Needs numpy and
PyTorch.

usage: OMP_NUM_THREADS=1 train_mla.py text.txt outprefix seconds [key=value ...]
       (the shipped model: train_mla.py austen.txt austen-mla 600)

Writes outprefix.npz for make_gguf_mla.py: one float32 array per tensor, in DeepSeek's layouts (q_b rows per head
[nope | rope], kv_a rows [kv_lora | rope], kv_b rows per head [nope | v]), and the configuration as JSON text in cfg.
Token ids: 0 unk, 1 bos, 2 eos, byte b is b + 3. The keys and their defaults stand in C below: dim, hidden, L layers,
H heads, ql and kvl ranks of query and key/value latent, nope, rope, vd per head, T training length, B batch, lr, theta.
"""
import json
import math
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

C = dict(dim=128, hidden=320, L=4, H=4, ql=64, kvl=48, nope=32, rope=16, vd=32, T=256, B=8, lr=3e-3, theta=10000.0)
VOCAB, BOS, FIRST_BYTE, HELD_OUT = 259, 1, 3, 25      # the last 1/25 of the text is not trained on


# ---- model

def rotate(x, cos, sin):
    """RoPE on neighbouring pairs; x [batch, time, heads, rope]."""
    a, b = x[..., 0::2], x[..., 1::2]
    cos, sin = cos[None, :, None], sin[None, :, None]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


def linear(n_in, n_out):
    return nn.Linear(n_in, n_out, bias=False)


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.w = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.w


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        dim, heads, hidden = C['dim'], C['H'], C['hidden']
        self.n1, self.n2, self.nq, self.nkv = Norm(dim), Norm(dim), Norm(C['ql']), Norm(C['kvl'])
        self.q_a, self.q_b = linear(dim, C['ql']), linear(C['ql'], heads * (C['nope'] + C['rope']))
        self.kv_a, self.kv_b = linear(dim, C['kvl'] + C['rope']), linear(C['kvl'], heads * (C['nope'] + C['vd']))
        self.wo = linear(heads * C['vd'], dim)
        self.w1, self.w2, self.w3 = linear(dim, hidden), linear(hidden, dim), linear(dim, hidden)

    def attend(self, y, cos, sin, hidden_keys):
        batch, n, _ = y.shape
        heads, nope, rope = C['H'], C['nope'], C['rope']
        q = self.q_b(self.nq(self.q_a(y))).view(batch, n, heads, nope + rope)
        q_nope, q_rope = q.split([nope, rope], -1)
        latent, k_rope = self.kv_a(y).split([C['kvl'], rope], -1)
        k_rope = rotate(k_rope.unsqueeze(2), cos, sin).expand(batch, n, heads, rope)
        k_nope, v = self.kv_b(self.nkv(latent)).view(batch, n, heads, nope + C['vd']).split([nope, C['vd']], -1)
        q = torch.cat((q_nope, rotate(q_rope, cos, sin)), -1).transpose(1, 2) * (nope + rope) ** -0.5
        k = torch.cat((k_nope, k_rope), -1).transpose(1, 2)
        weights = (q @ k.transpose(-1, -2)).masked_fill(hidden_keys, -1e9).softmax(-1)
        return self.wo((weights @ v.transpose(1, 2)).transpose(1, 2).reshape(batch, n, heads * C['vd']))

    def forward(self, x, cos, sin, hidden_keys):
        x = x + self.attend(self.n1(x), cos, sin, hidden_keys)
        y = self.n2(x)
        return x + self.w2(F.silu(self.w1(y)) * self.w3(y))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, C['dim'])
        self.bl = nn.ModuleList(Block() for _ in range(C['L']))
        self.nf = Norm(C['dim'])
        for name, p in self.named_parameters():
            if p.dim() > 1:
                into_stream = 'wo' in name or 'w2' in name
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * C['L']) if into_stream else 0.02)

    def forward(self, tokens):
        n = tokens.shape[1]
        freq = 1.0 / (C['theta'] ** (torch.arange(0, C['rope'], 2).float() / C['rope']))
        angle = torch.outer(torch.arange(n).float(), freq)
        hidden_keys = torch.ones(n, n, dtype=torch.bool).triu(1)
        x = self.emb(tokens)
        for block in self.bl:
            x = block(x, angle.cos(), angle.sin(), hidden_keys)
        return self.nf(x) @ self.emb.weight.T


# ---- training

def read_text(path):
    """One paragraph a line, spaces collapsed; token ids."""
    paragraphs = [' '.join(p.split()) for p in open(path).read().split('\n\n')]
    text = '\n'.join(p for p in paragraphs if p) + '\n'
    return np.frombuffer(text.encode('ascii', 'ignore'), np.uint8).astype(np.int32) + FIRST_BYTE


def batch(ids, starts):
    """Half of the rows begin with bos at the start of a paragraph, half anywhere."""
    n = C['T']
    rows = np.empty((C['B'], n + 1), np.int64)
    for r in range(C['B']):
        if r % 2:
            at = np.random.choice(starts)
            rows[r, 0] = BOS
            rows[r, 1:] = ids[at:at + n]
        else:
            at = np.random.randint(len(ids) - n - 1)
            rows[r] = ids[at:at + n + 1]
    rows = torch.from_numpy(rows)
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


@torch.no_grad()
def evaluate(model, ids, pieces):
    """Loss in nats per byte over the second halves of stretches."""
    n, total = C['T'], 0.0
    for i in range(pieces):
        at = i * (len(ids) - n - 1) // pieces
        x = torch.from_numpy(ids[at:at + n + 1].astype(np.int64))[None]
        total += F.cross_entropy(model(x[:, :-1])[0][n // 2:], x[0, 1:][n // 2:]).item()
    return total / pieces


def train(model, ids, held_out, seconds):
    newline = ord('\n') + FIRST_BYTE
    starts = np.flatnonzero(ids == newline) + 1
    starts = starts[starts < len(ids) - C['T'] - 2]
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{'params': matrices, 'weight_decay': 0.1}, {'params': vectors, 'weight_decay': 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=C['lr'], betas=(0.9, 0.95))
    begin, step, next_report = time.time(), 0, 30
    while time.time() - begin < seconds:
        done = (time.time() - begin) / seconds
        for group in optimiser.param_groups:
            group['lr'] = C['lr'] * min(1, (step + 1) / 100) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))
        x, y = batch(ids, starts)
        loss = F.cross_entropy(model(x).view(-1, VOCAB), y.view(-1))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        step += 1
        if time.time() - begin > next_report:
            next_report += 60
            print(f'{next_report - 60} s, step {step}, loss {loss.item():.3f}, held out '
                  f'{evaluate(model, held_out, 8):.3f}', flush=True)
    return step


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    for pair in sys.argv[4:]:
        key, value = pair.split('=')
        C[key] = type(C[key])(value)
    torch.set_num_threads(1)
    torch.manual_seed(1337)
    np.random.seed(1337)
    ids = read_text(sys.argv[1])
    cut = len(ids) - len(ids) // HELD_OUT
    model = Model()
    print('parameters', sum(p.numel() for p in model.parameters()), C, flush=True)
    steps = train(model, ids[:cut], ids[cut:], float(sys.argv[3]))
    print(f'held out: {evaluate(model, ids[cut:], 32):.4f} nats per byte')
    config = json.dumps(dict(C, vocab=VOCAB, iters=steps))
    np.savez(sys.argv[2] + '.npz', cfg=config, **{k: v.detach().numpy() for k, v in model.state_dict().items()})


main()
