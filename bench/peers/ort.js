// ort.js - onnxruntime's GroupQueryAttention, driven by ort.c: one line in, one line out.
//   argv: n heads kv_heads d window keys threads layers file
//   file: f32 q, k, v, token-major; the answer goes to file + ".out"
//   "s" -> seconds per layer of one sample;  "o" -> writes the answer, says "ok"
'use strict';
const path = require('path');
const fs = require('fs');
const ort = require(path.join(process.cwd(), 'node_modules', 'onnxruntime-node'));
const [n, heads, kvHeads, d, window, keys, threads, layers] = process.argv.slice(2, 10).map(Number);
const file = process.argv[10];

// ---- a one-node ONNX model, encoded by hand: protobuf needs nothing more than this ----
const varint = x => {
    const o = [];
    for (; x > 127; x = Math.floor(x / 128)) o.push(x % 128 + 128);
    return Buffer.from([...o, x]);
};
const minusOne = Buffer.from('ffffffffffffffffff01', 'hex');
const int = (field, x) => Buffer.concat([varint(field * 8), x < 0 ? minusOne : varint(x)]);
const bytes = (field, b) => {
    b = Buffer.isBuffer(b) ? b : Buffer.from(b);
    return Buffer.concat([varint(field * 8 + 2), varint(b.length), b]);
};
const msg = (field, ...parts) => bytes(field, Buffer.concat(parts));
const dim = x => typeof x === 'string' ? msg(1, bytes(2, x)) : msg(1, int(1, x));
const value = (field, name, type, dims) =>
    msg(field, bytes(1, name), msg(2, msg(1, int(1, type), msg(2, ...dims.map(dim)))));
const attr = (name, i) => msg(5, bytes(1, name), int(3, i), int(20, 2));

function model() {
    const inputs = ['q', 'k', 'v', 'past_k', 'past_v', 'seqlens', 'total'], outputs = ['out', 'now_k', 'now_v'];
    const node = msg(1, ...inputs.map(x => bytes(1, x)), ...outputs.map(x => bytes(2, x)), bytes(3, 'gqa'),
        bytes(4, 'GroupQueryAttention'), attr('num_heads', heads), attr('kv_num_heads', kvHeads),
        attr('local_window_size', window > 0 ? window : -1), bytes(7, 'com.microsoft'));
    const graph = msg(7, node, bytes(2, 'g'), value(11, 'q', 1, ['B', 'S', heads * d]),
        value(11, 'k', 1, ['B', 'S', kvHeads * d]), value(11, 'v', 1, ['B', 'S', kvHeads * d]),
        value(11, 'past_k', 1, ['B', kvHeads, 'P', d]), value(11, 'past_v', 1, ['B', kvHeads, 'P', d]),
        value(11, 'seqlens', 6, ['B']), value(11, 'total', 6, [1]), value(12, 'out', 1, ['B', 'S', heads * d]),
        value(12, 'now_k', 1, ['B', kvHeads, 'T', d]), value(12, 'now_v', 1, ['B', kvHeads, 'T', d]));
    const opset = (domain, version) => msg(8, bytes(1, domain), int(2, version));
    return Buffer.concat([int(1, 8), graph, opset('', 17), opset('com.microsoft', 1)]);
}

// ---- the work ----
const f32 = (a, dims) => new ort.Tensor('float32', a, dims);
const row = kvHeads * d;
const perHead = a => {                                     // [key][head][d] -> [head][key][d]
    const o = new Float32Array(keys * row);
    for (let t = 0; t < keys; t++)
        for (let h = 0; h < kvHeads; h++) {
            const from = (t * kvHeads + h) * d;
            o.set(a.subarray(from, from + d), (h * keys + t) * d);
        }
    return o;
};

async function main() {
    const raw = fs.readFileSync(file);
    const all = new Float32Array(raw.buffer, raw.byteOffset, raw.length / 4);
    const q = all.subarray(0, n * heads * d), k = all.subarray(n * heads * d, n * heads * d + keys * row);
    const v = all.subarray(n * heads * d + keys * row);
    const session = await ort.InferenceSession.create(model(),
        { intraOpNumThreads: threads, interOpNumThreads: 1, graphOptimizationLevel: 'all' });
    const out = f32(new Float32Array(n * heads * d), [1, n, heads * d]);
    const feeds = [], fetches = [];
    for (let l = 0; l < layers; l++) {
        const decode = n < keys;                           // the past and the present share one buffer
        const pk = decode ? f32(perHead(k), [1, kvHeads, keys, d]) : f32(new Float32Array(0), [1, kvHeads, 0, d]);
        const pv = decode ? f32(perHead(v), [1, kvHeads, keys, d]) : f32(new Float32Array(0), [1, kvHeads, 0, d]);
        feeds.push({ q: f32(q, [1, n, heads * d]), k: f32(k.slice((keys - n) * row), [1, n, row]),
            v: f32(v.slice((keys - n) * row), [1, n, row]), past_k: pk, past_v: pv,
            seqlens: new ort.Tensor('int32', Int32Array.of(keys - 1), [1]),
            total: new ort.Tensor('int32', Int32Array.of(keys), [1]) });
        fetches.push({ out, now_k: decode ? pk : f32(new Float32Array(keys * row), [1, kvHeads, keys, d]),
            now_v: decode ? pv : f32(new Float32Array(keys * row), [1, kvHeads, keys, d]) });
    }
    process.stdout.write('ready\n');
    for await (const line of require('readline').createInterface({ input: process.stdin })) {
        if (line === 's') {
            const t = process.hrtime.bigint();
            for (let l = 0; l < layers; l++) await session.run(feeds[l], fetches[l]);
            process.stdout.write(Number(process.hrtime.bigint() - t) * 1e-9 / layers + '\n');
        } else {
            const o = out.data;
            fs.writeFileSync(file + '.out', Buffer.from(o.buffer, o.byteOffset, o.byteLength));
            process.stdout.write('ok\n');
        }
    }
}
main().catch(e => {
    process.stdout.write('failed ' + String(e).split('\n')[0].slice(0, 200) + '\n');
    process.exit(1);
});
