'use strict';
// The page's side: reads the form, calls the engine one step at a time, draws what it says. No library, no network.
const $ = id => document.getElementById(id);
const POSITION = 0, TOKENS = 1, END = 2, FIRST = 3, SLOTS = 4, RING_BYTES = 5, FULL_BYTES = 6, STATE = 7, PROMPT = 8,
      VISIBLE_FROM = 9, N_NUMBERS = 10, READING = 1, WRITING = 2, DONE = 3;
const number = new Intl.NumberFormat('en');
let wasm, spans = [], decoder, history = [], computing = 0, decoded = 0, faded = 0, timer = 0, began = false;

// ---- the engine ----

const bytesOf = id => Uint8Array.from(atob($(id).textContent.replace(/\s+/g, '')), c => c.charCodeAt(0));
const memory = (at, n) => new Uint8Array(wasm.memory.buffer, at, n);
function words(at) {           // a line of the engine's, '' = NULL
  if (at === 0) return '';
  const all = new Uint8Array(wasm.memory.buffer, at, 256);
  return new TextDecoder().decode(all.slice(0, all.indexOf(0)));
}
function give(bytes) {
  const at = wasm.page_room(Math.max(bytes.length, 1));
  memory(at, bytes.length).set(bytes);
  return at;
}
function numbers() {
  return Array.from(new Float64Array(wasm.memory.buffer, wasm.page_numbers(), N_NUMBERS));
}
async function load() {
  // The engine opens no file and writes nowhere; what the C library would call for that answers "not supported".
  const nothing = new Proxy({}, { get: () => () => 52 });
  const made = await WebAssembly.instantiate(bytesOf('wasm'), { wasi_snapshot_preview1: nothing });
  wasm = made.instance.exports;
  wasm._initialize();
  const file = bytesOf('model'), why = words(wasm.page_model(give(file), file.length));
  if (why) throw new Error(why);
  $('isa').textContent = words(wasm.page_instructions());
}

// ---- the form ----

const whole = (lo, hi) => v => /^\d+$/.test(v) && +v >= lo && +v <= hi ? '' : `a whole number from ${lo} to ${hi}`;
const fields = [
  ['prompt', 'The prompt', v => v.trim() === '' ? 'some text' : ''],
  ['window', 'The window', whole(1, 512)],
  ['chunk', 'The chunk', whole(1, 512)],
  ['temperature', 'The temperature', v => /^\d*\.?\d+$/.test(v) && +v <= 5 ? '' : 'a number from 0 to 5'],
  ['tokens', 'Tokens to write', whole(1, 20000)],
  ['seed', 'The seed', whole(0, 4294967295)]];
function complain(text, field) {
  $('error').textContent = text;
  document.documentElement.dataset.state = 'refused';
  if (field) field.focus();
}
function formIsGood() {
  let first = null, text = '';
  for (const [id, name, judge] of fields) {
    const why = judge($(id).value);
    $(id).setAttribute('aria-invalid', why ? 'true' : 'false');
    if (why && !first) { first = $(id); text = `${name}: please ${why}.`; }
  }
  if (first) complain(text, first);
  else $('error').textContent = '';
  return !first;
}

// ---- a text ----

function begin() {
  stop();
  began = false;
  if (!formIsGood()) return false;
  const v = id => Number($(id).value), prompt = new TextEncoder().encode($('prompt').value), at = give(prompt);
  const why = words(wasm.page_begin(at, prompt.length, v('window'), v('chunk'), v('tokens'), v('temperature'), 0.9,
                                    v('seed')));
  wasm.page_free(at);
  if (why) { complain(`The engine refuses: ${why}.`); return false; }
  $('text').textContent = '';
  spans = []; history = []; computing = decoded = faded = 0;
  decoder = new TextDecoder();
  began = true;
  document.documentElement.dataset.state = 'working';
  return true;
}
function step() {              // false = the text is done
  const start = performance.now(), why = words(wasm.page_step()), took = performance.now() - start;
  if (why) { complain(`The engine stopped: ${why}.`); began = false; return false; }
  const x = numbers();
  if (x[POSITION] >= x[PROMPT]) { computing += took; decoded++; }
  while (spans.length < Math.min(x[END], x[STATE] === READING ? x[POSITION] + x[TOKENS] : x[END])) append(x);
  history.push([x[POSITION] + x[TOKENS], x[RING_BYTES], x[FULL_BYTES]]);
  return x[STATE] !== DONE;
}
function append(x) {
  const i = spans.length, bytes = memory(wasm.page_text(i), wasm.page_text_bytes(i)).slice();
  const span = document.createElement('span');
  span.textContent = decoder.decode(bytes, { stream: true });
  if (i < x[PROMPT]) span.className = 'prompt';
  spans.push(span);
  $('text').append(span);
}
function finish() {
  const x = numbers(), written = x[END] - x[PROMPT];
  stop();
  began = false;
  show();
  $('status').textContent = `Done: ${number.format(written)} tokens after a prompt of ${number.format(x[PROMPT])}; ` +
    `keys and values took ${number.format(x[RING_BYTES])} bytes all the time.`;
  document.documentElement.dataset.state = 'done';
}
function stop() {
  clearTimeout(timer);
  timer = 0;
  $('pause').textContent = 'Pause';
  $('pause').disabled = true;
  $('text').setAttribute('aria-busy', 'false');      // now a reader reads it out
}
function go() {
  $('pause').disabled = false;
  $('text').setAttribute('aria-busy', 'true');
  $('status').textContent = 'Writing.';
  tick();
}
function tick() {
  const pace = $('pace').value, until = performance.now() + 12;
  let more = step();
  for (let i = 1; more && pace === 'fast' && i < 64 && performance.now() < until; i++) more = step();
  if (!began) return stop();
  if (!more) return finish();
  show();
  timer = setTimeout(tick, pace === 'fast' ? 0 : 1000 / Number(pace));
}

// ---- drawing ----

const colour = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
function canvas(id, height) {  // a clean one, in CSS pixels
  const c = $(id), wide = c.clientWidth, high = height || c.clientHeight, ratio = window.devicePixelRatio || 1;
  c.width = Math.round(wide * ratio);
  c.height = Math.round(high * ratio);
  if (height) c.style.height = `${height}px`;
  const g = c.getContext('2d');
  g.scale(ratio, ratio);
  g.clearRect(0, 0, wide, high);
  g.font = '12px system-ui, sans-serif';
  return { g, wide, high, c };
}
function drawRing(x) {
  const { g, wide, c } = canvas('ring', $('ring').clientWidth), mid = wide / 2, outer = mid - 14, inner = outer * 0.66;
  const last = x[POSITION] + x[TOKENS] - 1, slots = x[SLOTS] || 64, held = new Array(slots).fill(-1);
  const window_ = last + 1 - Math.max(x[FIRST], 0), turn = 2 * Math.PI / slots, gap = slots > 150 ? 0 : turn * 0.1;
  for (let p = x[FIRST]; p <= last && x[TOKENS] > 0; p++) held[wasm.page_slot(p)] = p;
  for (let i = 0; i < slots; i++) {
    const from = i * turn - Math.PI / 2 + gap / 2, to = from + turn - gap, newest = held[i] === last && x[TOKENS] > 0;
    g.beginPath();
    g.arc(mid, mid, newest ? outer + 5 : outer, from, to);
    g.arc(mid, mid, inner, to, from, true);
    g.closePath();
    g.fillStyle = colour(held[i] < 0 ? 'hidden' : newest ? 'current' : 'cache');
    g.globalAlpha = held[i] < 0 || newest ? 1 : 0.2 + 0.8 * (1 - (last - held[i]) / Math.max(window_, 1));
    g.fill();
  }
  g.globalAlpha = 1;
  g.textAlign = 'center';
  g.fillStyle = colour('ink');
  g.font = '600 26px system-ui, sans-serif';
  g.fillText(x[TOKENS] > 0 ? String(last) : '–', mid, mid + 4);
  g.font = '12px system-ui, sans-serif';
  g.fillStyle = colour('quiet');
  g.fillText(`of ${slots} slots`, mid, mid + 24);
  g.fillText('position', mid, mid - 24);
  c.setAttribute('aria-label', x[TOKENS] > 0 ?
    `Ring buffer of ${slots} slots, holding positions ${x[FIRST]} to ${last}; ` +
    `the newest is in slot ${wasm.page_slot(last)}` : 'Ring buffer, empty');
}
// Columns: the past that nobody sees any more, the cache, this step's own tokens, as in the Mistral paper's figure. A
// step of one token stands below the tokens before it, which are paler.
function drawMask(x) {
  const { g, wide, high, c } = canvas('mask');
  if (x[TOKENS] === 0) return;
  const pos = x[POSITION], n = x[TOKENS], seen = Math.min(x[VISIBLE_FROM], pos);
  const before = n === 1 ? Math.min(7, pos) : 0;
  const past = Math.min(seen, Math.max(8 + before, Math.round((pos - seen) / 4)));
  const from = seen - past, columns = pos + n - from;
  const across = Math.min(columns, Math.floor(wide / 2)), down = Math.min(before + n, 64), top = 24, bottom = 20;
  const w = wide / across, h = Math.min((high - top - bottom) / down, 20), edge = k => (k - from) / columns * wide;
  for (let r = 0; r < down; r++) {
    const q = pos - before + Math.floor(r * (before + n) / down), old = q < pos;
    for (let i = 0; i < across; i++) {
      const k = from + Math.floor(i * columns / across), sees = wasm.page_visible(q, k), own = old ? k === q : k >= pos;
      g.fillStyle = colour(sees ? own ? 'current' : 'cache' : k < seen ? 'past' : 'hidden');
      g.globalAlpha = old && sees ? 0.35 : !sees && k < seen ? 0.35 : 1;
      g.fillRect(i * w, top + r * h, w > 4 ? w - 1 : w, h > 4 ? h - 1 : h);
    }
  }
  g.globalAlpha = 1;
  for (const [name, a, b, ink] of [['past', from, seen, 'quiet'], ['cache', seen, pos, 'cache'],
                                   ['current', pos, pos + n, 'current']]) {
    const left = edge(a), right = edge(b), half = g.measureText(name).width / 2, newest = name === 'current';
    if (b <= a) continue;
    g.fillStyle = colour(ink);
    g.fillRect(left + 1, 17, Math.max(right - left - 2, 2), 3);
    g.textAlign = 'center';
    g.fillText(name, Math.min(Math.max((left + right) / 2, half), wide - half), 12);
    g.textAlign = newest ? 'right' : 'left';
    g.fillStyle = colour('quiet');
    if (!newest && right - left <= 40) continue;
    g.fillText(String(newest ? pos + n - 1 : a), newest ? wide : left, top + down * h + 14);
  }
  const note = n === 1 ? `Token ${pos} (last row) sees positions ${seen} to ${pos}:`
    : `Rows are tokens ${pos} to ${pos + n - 1} of the prompt; the first sees`;
  $('mask-note').textContent = `${note} ${pos - seen} keys of the cache, and itself.` +
    (seen > 0 ? ` Positions 0 to ${seen - 1} are past: their slots are taken.` : '');
  c.setAttribute('aria-label', 'Attention mask. ' + $('mask-note').textContent);
}
function drawMemory() {
  const { g, wide, high, c } = canvas('memory'), now = history[history.length - 1];
  if (!now) return;
  const most = Math.max(now[1], now[2]) * 1.15, right = wide - 8, bottom = high - 20, end = Math.max(now[0], 2);
  const at = (n, bytes) => [8 + n / end * (right - 8), bottom - bytes / most * (bottom - 8)];
  const lineOf = (which, ink, dash) => {
    g.beginPath();
    g.setLineDash(dash);
    g.moveTo(...at(0, which === 1 ? now[1] : 0));
    for (const p of history) g.lineTo(...at(p[0], p[which]));
    g.strokeStyle = colour(ink);
    g.lineWidth = 2.5;
    g.stroke();
    g.setLineDash([]);
  };
  g.fillStyle = colour('line');
  g.fillRect(8, bottom, right - 8, 1);
  lineOf(2, 'past', [6, 5]);
  lineOf(1, 'cache', []);
  g.textAlign = 'right';
  g.fillStyle = colour('cache');
  g.fillText(`this ring: ${number.format(now[1])} bytes`, right, at(0, now[1])[1] - 7);
  g.fillStyle = colour('quiet');
  const full = at(end, now[2])[1];
  g.fillText(`a cache of all tokens: ${number.format(now[2])} bytes`, wide * 0.72,
             now[2] > now[1] ? Math.max(full + 4, 12) : bottom - 6);
  g.fillText(`${number.format(now[0])} tokens`, right, high - 4);
  c.setAttribute('aria-label',
    `Keys and values take ${number.format(now[1])} bytes now and at every step; ` +
    `a cache of all ${now[0]} tokens would take ${number.format(now[2])} bytes`);
}
function show() {
  const x = numbers(), last = x[POSITION] + x[TOKENS] - 1, box = $('text');
  $('n-position').textContent = x[TOKENS] > 0 ? number.format(last) : '0';
  $('n-slot').textContent = x[TOKENS] > 0 ? wasm.page_slot(last) : 'none';
  $('n-ring').textContent = `${number.format(x[RING_BYTES])} bytes`;
  $('n-memory').textContent = `${number.format(wasm.memory.buffer.byteLength)} bytes`;
  $('n-speed').textContent = computing > 0 ? number.format(Math.round(1000 * decoded / computing)) : 'none yet';
  if (began || x[STATE] === DONE) {
    for (; faded < x[VISIBLE_FROM] && faded < spans.length; faded++) spans[faded].classList.add('past');
    box.querySelectorAll('.new').forEach(s => s.classList.remove('new'));
    if (spans.length > x[PROMPT]) spans[spans.length - 1].classList.add('new');
    box.scrollTop = box.scrollHeight;
  }
  drawRing(x);
  drawMask(x);
  drawMemory();
}

// ---- controls ----

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  $('theme').textContent = name === 'dark' ? 'Light' : 'Dark';
  if (wasm) show();
}
function listen() {
  $('form').addEventListener('submit', event => {
    event.preventDefault();
    if (begin()) go();
  });
  $('pause').addEventListener('click', () => {
    if (timer) {
      clearTimeout(timer);
      timer = 0;
      $('pause').textContent = 'Continue';
      $('status').textContent = 'Paused.';
    } else {
      $('pause').textContent = 'Pause';
      go();
    }
  });
  $('step').addEventListener('click', () => {
    if (timer) $('pause').click();
    if (!began && !begin()) return;
    $('pause').disabled = false;
    $('pause').textContent = 'Continue';
    if (!step()) { if (began) finish(); return; }
    show();
    $('status').textContent = $('mask-note').textContent;
  });
  $('theme').addEventListener('click', () => setTheme($('theme').textContent === 'Dark' ? 'dark' : 'light'));
  window.addEventListener('resize', () => show());
}
async function main() {
  const asked = new URLSearchParams(location.search), dark = window.matchMedia('(prefers-color-scheme: dark)').matches;
  setTheme(asked.get('theme') || (dark ? 'dark' : 'light'));
  for (const [id] of [...fields, ['pace']]) if (asked.has(id)) $(id).value = asked.get(id);
  try { await load(); } catch (error) {
    $('status').textContent = '';
    return complain(`This page cannot run here: ${error.message}.`);
  }
  listen();
  show();
  $('status').textContent = 'Ready.';
  document.documentElement.dataset.state = 'ready';
  if (asked.has('go')) $('write').click();
}
main();
