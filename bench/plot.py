#!/usr/bin/env python3
"""plot.py - the benchmark's CSV files as SVG, with the standard library only.

    python3 bench/plot.py [folder of results, default: every one in bench/results]

limits.svg    percent of the limit that binds, case by case            from latest.csv
context.svg   time per token against the length of the context         from latest.csv
peers.svg     their time / our time                                    from peers.csv
"""
import csv
import os
import sys
from xml.sax.saxutils import escape

INK, GREY, PALE = "#222222", "#777777", "#e4e4e4"
FMA, DRAM, OTHER = "#2b6cb0", "#2f855a", "#b7791f"
FONT = 'font-family="system-ui, Helvetica, Arial, sans-serif"'


class Drawing:
    """Collects SVG elements; y grows downwards."""

    def __init__(self, width, height):
        self.width, self.height, self.parts = width, height, []
        self.rect(0, 0, width, height, "#ffffff")

    def rect(self, x, y, w, h, fill, opacity=1):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(w, 0):.1f}" height="{h:.1f}" fill="{fill}" '
                          f'fill-opacity="{opacity}"/>')

    def line(self, x1, y1, x2, y2, stroke=PALE, width=1):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}" '
                          f'stroke-width="{width}"/>')

    def text(self, x, y, s, size=12, anchor="start", fill=INK, weight="normal"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}" '
                          f'font-weight="{weight}" {FONT}>{escape(s)}</text>')

    def path(self, points, stroke):
        d = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.parts.append(f'<path d="{d}" fill="none" stroke="{stroke}" stroke-width="2.5"/>')
        for x, y in points:
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{stroke}"/>')

    def save(self, path):
        with open(path, "w", encoding="utf-8") as f:
            f.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
                    f'width="{self.width}" height="{self.height}">\n')
            f.write("\n".join(self.parts) + "\n</svg>\n")
        print("wrote", path)


def read(path):
    try:
        with open(path, newline="", encoding="utf-8") as f:
            return list(csv.DictReader(f))
    except OSError as e:
        print(f"SKIPPED: {e}", file=sys.stderr)
        return []


def machine(folder, of):
    try:
        with open(os.path.join(folder, of), encoding="utf-8") as f:
            return f.readline().strip()
    except OSError:
        return ""


def heading(d, title, lines):
    d.text(20, 30, title, 18, weight="bold")
    for i, s in enumerate(lines):
        d.text(20, 50 + 16 * i, s, 12, fill=GREY)


def plot_limits(rows, note, path):
    """One line per case and type: a bar per thread count, the first one solid."""
    bars = {}
    for r in rows:
        if r["limit"] in ("product", "fma", "dram") and not r["case"].startswith(("put-", "decode-ctx-")):
            bars.setdefault((r["case"], r["k_type"]), []).append(r)
    if not bars:
        return False
    left, top, width, row = 330, 100, 560, 22
    most = max(100.0, max(float(r["percent"]) for g in bars.values() for r in g))
    scale = width / (most * 1.08)
    d = Drawing(left + width + 40, top + row * len(bars) + 40)
    heading(d, "Percent of the limit that binds", [
        note, "Upper bar 1 thread, lower bar 2 threads; blue: f32 FMAs with operands from %s, green: DRAM read bandwidth; "
        "measured beside every sample" % ("L1" if any(r["limit"] == "product" for r in rows) else "registers")])
    bottom = top + row * len(bars)
    for p in range(0, int(most) + 1, 20):
        d.line(left + p * scale, top - 6, left + p * scale, bottom, GREY if p == 100 else PALE)
        d.text(left + p * scale, top - 10, f"{p} %", 11, "middle", GREY)
    for i, ((case, kind), group) in enumerate(bars.items()):
        y = top + row * i
        d.text(left - 8, y + 14, f"{case}  {kind}", 11, "end")
        h = (row - 4) / len(group)
        for j, r in enumerate(sorted(group, key=lambda r: int(r["threads"]))):
            percent = float(r["percent"])
            colour = DRAM if r["limit"] == "dram" else FMA
            d.rect(left, y + 2 + h * j, percent * scale, h - 1, colour, 1 if j == 0 else 0.6)
            d.text(left + percent * scale + 4, y + 2 + h * j + h - 1, f"{percent:.0f}", 9, fill=GREY)
    d.save(path)
    return True


def plot_context(rows, note, path):
    """Two lines on a logarithmic context axis: a window of 4096 keys, and none."""
    ring, full = [], []
    for r in rows:
        if r["case"].startswith("decode-ctx-") and r["threads"] == "1":
            n = int(r["case"].split("-")[2])
            (full if r["case"].endswith("-causal") else ring).append((n, float(r["median_us"])))
    if not ring:
        return False
    contexts = sorted({n for n, _ in ring + full})
    top_us = max(t for _, t in ring + full) * 1.1
    left, top, width, height = 80, 90, 640, 320
    bits = [n.bit_length() - 1 for n in contexts]
    d = Drawing(left + width + 60, top + height + 70)
    heading(d, "Time per token and layer against the length of the context", [
        note, "f16 K/V, 32 query and 8 KV heads of 128, 1 thread, caches cold"])
    x = lambda n: left + width * (n.bit_length() - 1 - bits[0]) / max(bits[-1] - bits[0], 1)
    y = lambda t: top + height * (1 - t / top_us)
    step = 10 ** (len(str(int(top_us))) - 1)
    for t in range(0, int(top_us) + 1, step):
        d.line(left, y(t), left + width, y(t))
        d.text(left - 8, y(t) + 4, f"{t}", 11, "end", GREY)
    d.text(left - 8, top - 8, "us", 11, "end", GREY)
    for n in contexts:
        d.text(x(n), top + height + 18, f"{n // 1024}K" if n < 1 << 20 else f"{n >> 20}M", 11, "middle", GREY)
    d.text(left + width / 2, top + height + 40, "tokens in the sequence", 12, "middle", GREY)
    for name, points, colour in ("window of 4096 keys", ring, FMA), ("no window", full, OTHER):
        if points:
            points.sort()
            d.path([(x(n), y(t)) for n, t in points], colour)
            d.text(x(points[-1][0]), y(points[-1][1]) - 12, name, 12, "end", colour, "bold")
    d.save(path)
    return True


def plot_peers(rows, note, path):
    """Grouped by case; a bar's length is how many times longer the peer takes."""
    if not rows:
        return False
    rows = sorted(rows, key=lambda r: (list(dict.fromkeys(q["case"] for q in rows)).index(r["case"]), r["peer"],
                                       int(r["threads"])))
    left, top, width, row, gap = 330, 100, 520, 15, 10
    cases = list(dict.fromkeys(r["case"] for r in rows))
    most = max(float(r["ratio"]) for r in rows) * 1.1
    scale = width / most
    d = Drawing(left + width + 60, top + row * len(rows) + (gap + 18) * len(cases) + 30)
    heading(d, "Other people's time / our time, on the same work in the same minutes", [
        note, "1 = as fast as swa.h; solid: 1 thread, pale: 2 threads; product-: a product of matrices alone beside "
        "attention of as many flops"])
    bottom = d.height - 30
    step = 1 if most < 12 else 5
    for p in range(0, int(most) + 1, step):
        d.line(left + p * scale, top - 6, left + p * scale, bottom, GREY if p == 1 else PALE)
        d.text(left + p * scale, top - 10, f"{p}x", 11, "middle", GREY)
    y = top
    for case in cases:
        d.text(20, y + 14, case, 12, weight="bold")
        y += 18
        for r in (r for r in rows if r["case"] == case):
            ratio = float(r["ratio"])
            if r["threads"] == "1":
                version = f' ({r["version"]})' if len(r["version"]) < 24 else ""
                d.text(left - 8, y + 11, r["peer"] + version, 11, "end")
            d.rect(left, y + 2, ratio * scale, row - 3, OTHER, 1 if r["threads"] == "1" else 0.55)
            d.text(left + ratio * scale + 4, y + 11, f"{ratio:.1f}", 10, fill=GREY)
            y += row
        y += gap
    d.save(path)
    return True


def draw(folder):
    rows, peers = read(os.path.join(folder, "latest.csv")), read(os.path.join(folder, "peers.csv"))
    note = machine(folder, "latest.txt")
    drawn = [plot_limits(rows, note, os.path.join(folder, "limits.svg")),
             plot_context(rows, note, os.path.join(folder, "context.svg")),
             plot_peers(peers, machine(folder, "peers.txt"), os.path.join(folder, "peers.svg"))]
    for name, done in zip(("limits.svg", "context.svg", "peers.svg"), drawn):
        if not done:
            print(f"SKIPPED: no data for {name}", file=sys.stderr)
    return any(drawn)


def main():
    results = os.path.join("bench", "results")
    folders = sys.argv[1:] or sorted(f.path for f in os.scandir(results) if f.is_dir())
    return 0 if folders and all([draw(folder) for folder in folders]) else 1


if __name__ == "__main__":
    sys.exit(main())
