"""web.py BROWSER PAGE SHOTS - drives examples/web in headless Chromium through its debugging pipe, as a person with a
keyboard would: asks for texts by links, goes through the controls with Tab, writes with Enter, pauses with Space,
reads what a screen reader is told. Standard library alone. One line per case: `ok` or `FAILED`, what it was."""
import base64, json, os, subprocess, sys, time, urllib.parse

class Browser:
    def __init__(self, program, profile):
        (theirs_in, self.out), (self.into, theirs_out) = os.pipe(), os.pipe()
        os.set_inheritable(theirs_in, True)
        os.set_inheritable(theirs_out, True)
        script = f"exec 3<&{theirs_in} 4>&{theirs_out}; exec \"$@\""
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--no-first-run", "--remote-debugging-pipe", f"--user-data-dir={profile}", "--window-size=1220,980",
             "about:blank"], pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.rest, self.count, self.session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def call(self, method, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                more = os.read(self.into, 1 << 20)
                if not more:
                    raise SystemExit("FAILED the browser went away")
                self.rest += more
            one, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(one)
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise SystemExit(f"FAILED {method}: {answer['error']['message']}")
                return answer["result"]

    def value(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def until(self, expression, seconds=60):
        end = time.time() + seconds
        while time.time() < end:
            if self.value(expression):
                return True
            time.sleep(0.05)
        return False

    def open(self, page, **asked):
        self.call("Page.navigate", url=f"file://{page}?{urllib.parse.urlencode(asked)}")
        end = "refused done" if "go" in asked else "refused ready"
        return self.until(f"{json.dumps(end)}.split(' ').includes(document.documentElement.dataset.state)")

    def key(self, name, code, text=None):
        extra = {"text": text} if text else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, **extra)

    def shot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

failed = 0
def ok(good, what):
    global failed
    failed += not good
    print(("ok " if good else "FAILED ") + what, flush=True)

def shown(b, name):
    return b.value(f"document.getElementById('{name}').textContent")

def same_text(b, page, native, prompt, window, chunk, temperature, seed, tokens):
    b.open(page, go=1, pace="fast", prompt=prompt, window=window, chunk=chunk, temperature=temperature, seed=seed,
           tokens=tokens)
    want = subprocess.run([native, "-p", prompt, "-w", str(window), "-c", str(chunk), "-t", str(temperature),
                           "-s", str(seed), "-n", str(tokens)], capture_output=True).stdout
    text = shown(b, "text").encode()
    ok(len(text) > tokens and text + b"\n" == want,
       f"window {window}, chunk {chunk}, temperature {temperature}, seed {seed}: {tokens} tokens as the native program")

def keyboard(b, page):
    b.open(page)
    reached = []
    for _ in range(11):
        b.key("Tab", 9)
        reached.append(b.value("document.activeElement.id"))
    want = ["theme", "prompt", "window", "chunk", "temperature", "tokens", "seed", "pace", "write", "step", "text"]
    ok(reached == want, "Tab reaches every control in the order of the page: " + " ".join(reached))
    b.value("document.getElementById('tokens').focus()")
    b.key("Enter", 13, "\r")
    ok(b.until("document.documentElement.dataset.state === 'working' && document.getElementById('n-position')"
               ".textContent > '0'", 10), "Enter in a field writes")
    b.value("document.getElementById('pause').focus()")
    b.key(" ", 32, " ")
    at = shown(b, "n-position")
    time.sleep(0.4)
    ok(shown(b, "status") == "Paused." and shown(b, "n-position") == at, f"Space on Pause holds it, at position {at}")
    b.value("document.getElementById('step').focus()")
    before = int(at)
    b.key("Enter", 13, "\r")
    ok(int(shown(b, "n-position")) > before, "Enter on One step goes one step: " + shown(b, "status"))

def reader(b, page):
    b.open(page, go=1, pace="fast", tokens=200)
    nodes = b.call("Accessibility.getFullAXTree")["nodes"]
    named = {}
    for n in nodes:
        role, name = n.get("role", {}).get("value"), n.get("name", {}).get("value", "")
        if not n.get("ignored"):
            named.setdefault(role, []).append(name)
    controls = [n for r in ("textbox", "combobox", "button") for n in named.get(r, [])]
    pictures = named.get("image", []) + named.get("img", [])
    ok(len(controls) == 11 and all(controls), "a screen reader has a name for each control: " + ", ".join(controls))
    ok(len(pictures) == 3 and all(len(p) > 40 for p in pictures), "and words for each picture: " + "; ".join(pictures))
    ok(b.value("document.getElementById('text').ariaBusy") == "false" and "Done" in shown(b, "status"),
       "and is told at the end: " + shown(b, "status"))

def refusals(b, page):
    for name, value in (("window", "0"), ("window", "x"), ("chunk", "0"), ("temperature", "-1"), ("tokens", "1e9"),
                        ("seed", "-2"), ("prompt", " ")):
        b.open(page, go=1, **{name: value})
        ok(b.value(f"document.getElementById('{name}').ariaInvalid") == "true"
           and b.value("document.activeElement.id") == name and shown(b, "error") != "",
           f"{name} {value!r}: {shown(b, 'error')}")
    b.open(page, go=1, window=8, tokens=20000, prompt="word " * 20000)
    ok("context" in shown(b, "error"), "more than the model's context: " + shown(b, "error"))

def memory(b, page):
    seen = []
    for tokens in (50, 3000):
        b.open(page, go=1, pace="fast", tokens=tokens)
        seen.append((shown(b, "n-ring"), shown(b, "n-memory")))
    ok(seen[0] == seen[1] and shown(b, "isa") == "simd128",
       f"memory after 50 and after 3,000 tokens: {seen[0]}, {seen[1]}; {shown(b, 'n-speed')} tokens a second")
    ok(shown(b, "n-speed").replace(",", "").isdigit(), "tokens a second are shown")

def main():
    program, page, shots, native = sys.argv[1:5]
    b = Browser(program, shots + "/profile")
    same_text(b, page, native, "Elizabeth was", 64, 128, 0.8, 1, 200)
    same_text(b, page, native, "It is a truth universally acknowledged, that a single man", 64, 5, 1.0, 7, 300)
    same_text(b, page, native, "My dear Emma", 20, 16, 0, 1, 100)
    memory(b, page)
    refusals(b, page)
    keyboard(b, page)
    reader(b, page)
    for theme in ("light", "dark"):
        b.open(page, go=1, pace="fast", theme=theme)
        b.shot(f"{shots}/{theme}.png")
        ok(os.path.getsize(f"{shots}/{theme}.png") > 20000, f"screenshot: {shots}/{theme}.png")
    b.call("Browser.close")
    b.process.wait(20)
    return failed

sys.exit(main() != 0)
