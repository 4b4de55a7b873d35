#!/usr/bin/env python3
"""table.py - writes what README.md shows of bench/results: a table of swa.h beside its peers for every kind of CPU that
has a peers.csv, and every folder's pictures. One thread. Standard library only; `make figures` runs plot.py, then this.

Times are theirs divided by ours in the same minutes; in our own row milliseconds per layer. An error is relative rms
against double precision: the largest of the cases with f32 rows. A peer's case that was not measured is left empty. A
file without errors and bits, as early versions of bench/peers wrote it, is named under the tables and not shown in one.
"""
import csv
import glob
import os
import statistics
import sys

BEGIN, END = "<!-- table.py writes from here -->", "<!-- to here -->"
PICTURES_BEGIN, PICTURES_END = "<!-- table.py: pictures from here -->", "<!-- pictures to here -->"
PICTURES = [("limits.svg", "percent of the limit"), ("context.svg", "time per token"),
            ("peers.svg", "their time / our time")]
CASES = [("prefill-8192-w4096-d128-f32", "prefill 8192, W = 4096"),
         ("prefill-8192-w1024-d128-f32", "W = 1024"), ("prefill-512-causal-d128-f32", "prefill 512"),
         ("decode-w4096-d128-f32", "decode W = 4096"), ("decode-w4096-d128-f16", "decode, f16"),
         ("decode-w4096-d128-q8", "decode, int8"),
         ("mla-decode-n1024-h128-f32", "MLA, 128 heads, 1024 keys")]
PEERS = [("ggml-flash", "ggml flash"), ("ggml-flash-512-chunks", "ggml flash, chunks of 512"),
         ("ggml-matmul", "ggml mat-mul"), ("openblas-256-blocks", "OpenBLAS, blocks of 256"),
         ("onnxruntime-gqa", "onnxruntime GQA"), ("naive-loop", "plain loop, -ffast-math")]


def ms(x):
    return "%.0f" % x if x >= 100 else "%.3g" % x


def table(rows, note):
    mine = {}                    # ours is timed beside each peer: the median of these
    for r in rows:
        mine.setdefault(r["case"], []).append(float(r["ours_us"]))
    ours_error = [float(r["ours_error"]) for r in rows if r.get("ours_error") and r["case"].endswith("f32")]
    lines = [note, "", "| | %s | error | same bits |" % " | ".join(words for _, words in CASES),
             "|---|%s|" % "|".join(["---:"] * (len(CASES) + 1) + ["---"])]
    lines.append("| **swa.h**, ms | %s | %s | yes |" % (
        " | ".join(ms(statistics.median(mine[c]) / 1000) if c in mine else "" for c, _ in CASES),
        "%.0e" % max(ours_error) if ours_error else ""))
    for peer, words in PEERS:
        its = {r["case"]: r for r in rows if r["peer"] == peer}
        if not its:
            continue
        errors = [float(r["error"]) for c, r in its.items() if r.get("error") and c.endswith("f32")]
        bits = next(iter(its.values())).get("same_bits") or ""
        lines.append("| %s | %s | %s | %s |" % (
            words, " | ".join("%.1f" % float(its[c]["ratio"]) if c in its else "" for c, _ in CASES),
            "%.0e" % max(errors) if errors else "", bits.replace("other ", "other: ").replace(" ", ", ").replace(":,", ":")))
    return lines


def between(text, begin, end, lines):
    """The text with new lines between two marks; None if they are not there once each."""
    if text.count(begin) != 1 or text.count(end) != 1:
        return None
    head, rest = text.split(begin)
    return head + begin + "\n" + "\n".join(lines) + "\n\n" + end + rest.split(end)[1]


def main():
    results, lines, pictures, partial = os.path.join("bench", "results"), [], [], []
    for path in sorted(glob.glob(os.path.join(results, "*", "peers.csv"))):
        with open(path, newline="", encoding="utf-8") as f:
            # products of matrices, of oneDNN, are no attention: SPEED.md shows them
            rows = [r for r in csv.DictReader(f) if r["threads"] == "1" and not r["case"].startswith("product-")]
        note = path[:-4] + ".txt"
        if not os.path.exists(note):
            note = os.path.join(os.path.dirname(path), "latest.txt")
        with open(note, encoding="utf-8") as f:
            about = f.readline().strip()
        if all(r.get("error") and r.get("ours_error") and r.get("same_bits") for r in rows):
            lines += [""] + table(rows, about)
        else:
            partial.append("%s (%s)" % (path.replace(os.sep, "/"), about))
    lines += ["", "Not in the table, because they are times alone, without errors and bits: %s." % "; ".join(partial)] if partial else []
    for folder in sorted(f.name for f in os.scandir(results) if f.is_dir()):
        here = [(name, words) for name, words in PICTURES if os.path.exists(os.path.join(results, folder, name))]
        pictures += [""] if here else []
        pictures += ["![%s: %s](bench/results/%s/%s)" % (folder, words, folder, name) for name, words in here]
    with open("README.md", encoding="utf-8") as f:
        text = f.read()
    text = text if not lines else between(text, BEGIN, END, lines)
    text = text and between(text, PICTURES_BEGIN, PICTURES_END, pictures)
    if not text or not pictures:
        print("table.py: no place in README.md, or no results", file=sys.stderr)
        return 1
    with open("README.md", "w", encoding="utf-8") as f:
        f.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
