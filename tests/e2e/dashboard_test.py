#!/usr/bin/env python3
"""The web page in a real browser, and what its port refuses.

usage: dashboard_test.py DRAKKAR refusals|page|large [DIRECTORY FOR PICTURES]
"""
import http.client
import http.server
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import sys
import tempfile
import threading

from browser import Browser, skip_without_browser
from cluster import SKIP, free_port, remove_work, wait_until
from hollow_api import HollowApi

DRAKKAR = os.path.realpath(sys.argv[1])
PICTURES = sys.argv[3] if len(sys.argv) > 3 else None

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: gpu-worker-1}
status:
  allocatable: {cpu: "8", memory: 32Gi, pods: "110"}
  capacity: {cpu: "8", memory: 32Gi, pods: "110"}
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec: {}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gpu-worker-1}
spec:
  driver: gpu.example.com
  nodeName: gpu-worker-1
  pool: {name: gpu-worker-1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {model: {string: H100}}, capacity: {memory: {value: 80Gi}}}
  - {name: gpu-1, attributes: {model: {string: H100}}, capacity: {memory: {value: 80Gi}}}
  - {name: gpu-2, attributes: {model: {string: H100}}, capacity: {memory: {value: 80Gi}}}
  - {name: gpu-3, attributes: {model: {string: H100}}, capacity: {memory: {value: 80Gi}}}
"""

POD = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: %(name)s-gpu}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, count: %(count)d}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: %(name)s}
spec:
  containers: [{name: main, image: none, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: %(name)s-gpu}]
"""


class ControlPlane:
    """`drakkar up` without a node, with the page. The URL is in a file that only its owner can read."""

    def __init__(self):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-dashboard-"))
        self.data = self.work / "data"
        self.log = open(self.work / "up.log", "w")
        self.process = subprocess.Popen(
            [DRAKKAR, "up", f"--data-dir={self.data}", f"--port={free_port()}", "--node=false", "--scheduler-port=0",
             "--controllers-port=0", "--dashboard-port=0"], stdout=self.log, stderr=self.log)
        self.url_file = self.data / "dashboard.url"
        self.url = wait_until("the page is served", lambda: self.url_file.exists() and self.url_file.read_text().strip(), 60)

    def run(self, *words, stdin=None, check=True):
        result = subprocess.run([DRAKKAR, *words], input=stdin, text=True, capture_output=True, check=False,
                                env=dict(os.environ, KUBECONFIG=str(self.data / "admin.kubeconfig")))
        if check and result.returncode != 0:
            raise AssertionError(f"drakkar {' '.join(words)}: {result.stderr}")
        return result.stdout

    def apply(self, text):
        self.run("apply", "-f", "-", stdin=text)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=30)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.stop()
        if kind is not None and kind is not SystemExit:
            print((self.work / "up.log").read_text()[-3000:])
        remove_work(self.work)


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: got {got!r}, not {wanted!r}")
    print(f"ok: {what}")


# --- What the port refuses ---------------------------------------------------------------------


class Port:
    def __init__(self, url):
        match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{64})", url)
        assert match, url
        self.port, self.token = int(match[1]), match[2]

    def get(self, path, method="GET", token=None, host=None, **headers):
        """Status, headers and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host or f"127.0.0.1:{self.port}")
        if token:
            connection.putheader("Authorization", f"Bearer {token}")
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        response = connection.getresponse()
        body = b"" if response.getheader("Content-Type") == "text/event-stream" else response.read()
        self.last = connection  # streams stay open until they are closed
        return response.status, response.headers, body.decode()

    def status(self, *arguments, **named):
        return self.get(*arguments, **named)[0]


def skip_without_page(url):
    """A binary that was built without npm has a page that says so."""
    port = Port(url)
    cookie = port.get(f"/?token={port.token}")[1]["Set-Cookie"].split(";")[0]
    if "built without its web page" in port.get("/", Cookie=cookie)[2]:
        print("skipped: the binary was built without npm, so it has no page")
        raise SystemExit(SKIP)


def test_refusals():
    with ControlPlane() as plane:
        port = Port(plane.url)
        expect("mode of the URL's file", stat.S_IMODE(plane.url_file.stat().st_mode), 0o600)
        for path in ("/", "/app.js", "/api/stream", "/api/claims", "/?token=", "/?token=" + "0" * 64, "/?token=" + port.token[:-1]):
            expect(f"{path} without the token", port.status(path), 401)
        expect("data with a wrong token", port.status("/api/claims", token="0" * 64), 401)
        expect("data with the token", port.status("/api/claims", token=port.token), 200)
        status, headers, _ = port.get(f"/?token={port.token}")
        expect("the URL redirects", (status, headers["Location"]), (303, f"/#token={port.token}"))
        cookie = headers["Set-Cookie"].split(";")[0]
        expect("the cookie is not the token", port.token in cookie, False)
        status, headers, page = port.get("/", Cookie=cookie)
        expect("the page with the cookie", status, 200)
        expect("the page has no token", port.token in page, False)
        expect("no inline code in the policy", "unsafe" in headers["Content-Security-Policy"], False)
        expect("data with the cookie alone", port.status("/api/claims", Cookie=cookie), 401)
        for host in ("evil.example", f"evil.example:{port.port}", "127.0.0.1.evil.example", "0.0.0.0"):
            expect(f"host {host}", port.status("/api/claims", token=port.token, host=host), 403)
        for host in (f"localhost:{port.port}", "[::1]:1234"):
            expect(f"host {host}", port.status("/api/claims", token=port.token, host=host), 200)
        for origin in ("http://evil.example", "null", f"http://127.0.0.1:{port.port + 1}", f"https://127.0.0.1:{port.port}"):
            expect(f"origin {origin}", port.status("/api/claims", token=port.token, Origin=origin), 403)
        expect("another site", port.status("/api/claims", token=port.token, Sec_Fetch_Site="cross-site"), 403)
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            expect(method, port.status("/api/claims", method=method, token=port.token), 405)
        for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2fetc%2fpasswd", "//etc/passwd", "/index.html",
                     "/app.js/../../x", "/app.js%00.html"):
            expect(f"file {path}", port.status(path, Cookie=cookie) in (400, 404), True)
        expect("no such question", port.status("/api/../secret", token=port.token), 404)
        expect("a bad number", port.status("/api/claims?limit=x", token=port.token), 400)
        # Bounds: further streams are refused, and closed ones make room.
        streams = []
        for _ in range(16):
            expect("a stream", port.status("/api/stream", token=port.token), 200)
            streams.append(port.last)
        expect("one stream too many", port.status("/api/stream", token=port.token), 503)
        for stream in streams:
            stream.close()
        wait_until("there is room again", lambda: port.status("/api/stream", token=port.token) == 200)
        # Only loopback listens, and the token is in no log.
        listening = pathlib.Path("/proc/net/tcp").read_text() + pathlib.Path("/proc/net/tcp6").read_text()
        bound = [line.split()[1] for line in listening.splitlines() if line.split()[1].endswith(f":{port.port:04X}") and line.split()[3] == "0A"]
        expect("listens on 127.0.0.1 only", bound, [f"0100007F:{port.port:04X}"])
        plane.stop()
        expect("it ends cleanly", plane.process.returncode, 0)
        log = (plane.work / "up.log").read_text()
        expect("the log names the file", str(plane.url_file) in log, True)
        expect("the log has no token", port.token in log, False)
        expect("the URL's file is removed", plane.url_file.exists(), False)


# --- The page ----------------------------------------------------------------------------------


def picture(browser, name):
    if PICTURES:
        browser.picture(os.path.join(PICTURES, f"{name}.png"))


def pictures_in_all_looks(browser, name):
    if not PICTURES:
        return
    for width, height, phone in ((1400, 850, False), (400, 800, True)):
        for dark in (False, True):
            browser.resize(width, height, 2 if phone else 1, phone)
            browser.dark(dark)
            browser.run("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
            picture(browser, f"{name}-{width}-{'dark' if dark else 'light'}")
    browser.resize(1400, 850)
    browser.dark(False)


def cell_centre(browser, cell):
    """Finds the cell of the first node: the map shows what is under the pointer."""
    left, top = browser.run("const r = document.querySelector('canvas').getBoundingClientRect(); return [r.left, r.top]")
    for x in range(0, 600, 6):
        browser.run("""const e = document.querySelector('canvas');
            e.dispatchEvent(new PointerEvent('pointermove', {clientX: arguments[0], clientY: arguments[1], bubbles: true}))""",
                    left + x, top + 14)
        if browser.text(".map-line").strip().startswith(cell):
            return left + x + 4, top + 14
    raise AssertionError(f"the map has no {cell}")


class Attacker:
    """A web site on another port of the same host: it gets the host's cookies, and its script tries to read the page."""

    def __init__(self, target):
        heard = self.heard = []
        page = f"""<!doctype html><p id=said></p><script>
            const target = {json.dumps(target)};
            const say = text => document.getElementById('said').append(text + ';');
            Promise.allSettled([
              fetch(target + '/api/claims', {{credentials: 'include'}}), fetch(target + '/', {{credentials: 'include'}}),
              fetch(target + '/api/claims', {{headers: {{Authorization: 'Bearer guess'}}}}),
              fetch(target + '/api/claims', {{method: 'POST', credentials: 'include'}}),
            ]).then(results => say(results.map(r => r.status).join(',')));
            </script>""".encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                heard.append(str(self.headers))
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(page)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def test_page():
    skip_without_browser()
    with ControlPlane() as plane, Browser() as browser:
        skip_without_page(plane.url)
        port = Port(plane.url)
        browser.resize(1400, 850)
        browser.open(plane.url)
        browser.wait_for("live", ".status")
        browser.wait_for("No devices yet")
        expect("the address has no token", port.token in browser.url(), False)
        pictures_in_all_looks(browser, "empty")

        # It updates without a reload.
        plane.apply(CLUSTER)
        wait_until("four devices are free", lambda: legend(browser) == {"Free": 4})
        plane.apply(POD % {"name": "train", "count": 2})
        wait_until("two devices are held", lambda: legend(browser) == {"Held": 2, "Free": 2})
        plane.apply(POD % {"name": "greedy", "count": 3})
        pictures_in_all_looks(browser, "four")

        # Click a device.
        browser.click_at(*cell_centre(browser, "gpu-0"))
        browser.wait_for("default/train", ".drawer")
        drawer = browser.text(".drawer")
        for part in ("Held", "gpu-worker-1", "H100", "80Gi", "train-gpu", "gpu.example.com"):
            expect(f"the details show {part}", part in drawer, True)
        pictures_in_all_looks(browser, "device")
        browser.press("Escape")
        expect("Escape closes the details", browser.run("return document.querySelector('.drawer').hidden"), True)

        # The same by keyboard: the map is reached with Tab, moves with arrows and opens with Enter.
        browser.run("document.activeElement.blur(); document.querySelector('input[type=search]').focus()")
        browser.press("Tab", "Tab", "Tab")
        expect("the map has the focus", browser.run("return document.activeElement.tagName"), "CANVAS")
        browser.press("Home", "ArrowRight", "ArrowRight", "ArrowRight")
        expect("the cursor is described", browser.text("#map-active"), "gpu-3, Free, node gpu-worker-1")
        browser.press("Enter")
        browser.wait_for("gpu-3", ".drawer h2")
        browser.press("Escape")
        expect("the focus is back", browser.run("return document.activeElement.tagName"), "CANVAS")

        # What is free by class, as `drakkar free` counts it.
        browser.wait_for("gpu.example.com", ".classes")
        expect("the counts of the class", browser.run(
            "return [...document.querySelectorAll('.classes td')].map(e => e.innerText)"), ["4", "2", "2"])

        # Waiting pods with the answer of `drakkar why`.
        browser.press("2")
        browser.wait_for("greedy", ".rows")
        browser.click(".row-head", "greedy")
        browser.wait_for("What would help", ".answer")
        why = json.loads(plane.run("why", "pod", "greedy", "-o", "json", check=False))
        expect("the sentence is that of the command", browser.text(".sentence"), why["sentence"])
        pictures_in_all_looks(browser, "pending")

        # Claims with a timeline.
        browser.press("3")
        browser.click(".row-head", "train-gpu")
        browser.wait_for("allocated", ".timeline")
        expect("the timeline begins with the creation", browser.text(".timeline li").split("\n")[0].endswith("created"), True)
        pictures_in_all_looks(browser, "claim")
        browser.press("Escape")

        # Health history: a taint appears while the page is open.
        browser.press("4")
        plane.apply(CLUSTER.replace("{name: gpu-3,", "{name: gpu-3, taints: [{key: hot, effect: NoSchedule}],"))
        browser.wait_for("hot:NoSchedule", ".rows")
        pictures_in_all_looks(browser, "health")
        browser.press("5")
        browser.wait_for("pods scheduled", ".tiles")
        wait_until("one pod was scheduled", lambda: browser.text(".tile b") == "1")
        pictures_in_all_looks(browser, "scheduler")

        # Looks: dark, and a phone without sideways scrolling.
        browser.press("1")
        light = browser.run("return getComputedStyle(document.body).backgroundColor")
        browser.dark(True)
        expect("dark mode differs", browser.run("return getComputedStyle(document.body).backgroundColor") != light, True)
        browser.dark(False)
        browser.resize(400, 800, 2, True)
        for tab in "12345":
            browser.press(tab)
            expect(f"tab {tab} fits a phone", browser.run("return document.documentElement.scrollWidth"), 400)
            wait_until(f"the link of tab {tab} is in sight", lambda: browser.run(
                "const r = document.querySelector('nav [aria-current]').getBoundingClientRect(); return r.left >= 0 && r.right <= 400"))
        browser.resize(1400, 850)

        # It makes no requests to other hosts, and logs no errors.
        origin = f"http://127.0.0.1:{port.port}/"
        strangers = [url for url in browser.requests() if not url.startswith((origin, "data:", "about:", "chrome:"))]
        expect("requests to others", strangers, [])
        expect("errors on the console", browser.console(), [])
        browser.open(plane.url)
        browser.open(origin)
        browser.wait_for("live", ".status")  # a reload needs no token in the address

        # Another site in the same browser learns nothing. Cookies are sent to all ports of a host; ours opens no data.
        attacker = Attacker(origin.rstrip("/"))
        browser.open(attacker.url)
        browser.wait_for("rejected,rejected,rejected,rejected", "#said")
        expect("the token reached the other site", any(port.token in heard for heard in attacker.heard), False)
        attacker.server.shutdown()

        browser.open(origin)
        browser.wait_for("live", ".status")
        plane.stop()
        browser.wait_for("reconnecting", ".status")


def legend(browser):
    """Counts that are not zero, by state."""
    chips = browser.run("return [...document.querySelectorAll('.chip')].map(e => [e.querySelector('span').innerText, e.querySelector('b').innerText])")
    return {name: int(number.replace(",", "")) for name, number in chips if number != "0"}


# --- 5,000 nodes, 50,000 devices ---------------------------------------------------------------


def test_large():
    skip_without_browser()
    work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-dashboard-"))
    api = HollowApi(5000, 10)
    kubeconfig = work / "kubeconfig"
    api.write_kubeconfig(kubeconfig)
    command = subprocess.Popen([DRAKKAR, "dashboard", f"--kubeconfig={kubeconfig}"], stdout=subprocess.PIPE, text=True)
    try:
        command.stdout.readline()
        url = command.stdout.readline().strip()
        skip_without_page(url)
        with Browser() as browser:
            browser.resize(1400, 850)
            browser.open(url)
            wait_until("50,000 devices are shown", lambda: sum(legend(browser).values()) == 50_000, 120)
            print(f"ok: {legend(browser)}")
            # Scroll from top to bottom, one window per frame: no frame takes long.
            frames = browser.run("""
                const scroller = document.querySelector('.map-scroll');
                const times = [];
                return new Promise(done => {
                  let last = performance.now();
                  const step = () => {
                    const now = performance.now();
                    times.push(now - last);
                    last = now;
                    scroller.scrollTop += scroller.clientHeight;
                    if (scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 1) done(times.slice(1));
                    else requestAnimationFrame(step);
                  };
                  requestAnimationFrame(step);
                });""")
            frames.sort()
            print(f"{len(frames)} frames: half within {frames[len(frames) // 2]:.1f} ms, longest {frames[-1]:.1f} ms")
            expect("half of the frames take less than 100 ms", frames[len(frames) // 2] < 100, True)
            browser.run("document.querySelector('.map-scroll').scrollTop = 0; document.querySelector('canvas').focus()")
            pictures_in_all_looks(browser, "large")
            browser.resize(1200, 560)
            browser.run("document.activeElement.blur()")
            picture(browser, "readme")
            browser.resize(1400, 850)
            # A node is found by name, and its last device opened by keyboard.
            browser.run("document.querySelector('input[type=search]').focus()")
            browser.press(*"gpu-4999")
            browser.wait_for("1 node, 10 devices", ".map-line")
            browser.press("Tab", "Tab", "Tab", "End", "Enter")
            browser.wait_for("gpu-4999", ".drawer .where")
            pictures_in_all_looks(browser, "large-found")
            browser.press("Escape")
            browser.run("const s = document.querySelector('input[type=search]'); s.value = ''; s.dispatchEvent(new Event('input'))")
            browser.click(".chip", "Tainted")
            wait_until("only nodes with tainted devices are shown",
                       lambda: re.match(r"\d+ nodes, [\d,]+ devices", browser.text(".map-line")))
            pictures_in_all_looks(browser, "large-tainted")
            browser.run("location.hash = 'claims'")
            browser.wait_for("100 of", ".foot")
            expect("errors on the console", browser.console(), [])
            # The cluster becomes unreachable: the page keeps what it knows, and says so.
            api.close()
            browser.wait_for("Not current", ".notices", 60)
            browser.wait_for("not current", ".status")
            browser.run("location.hash = 'map'")
            expect("the devices are still shown", sum(legend(browser).values()), 50_000)
            picture(browser, "not-current")
        command.terminate()
        expect("the command ends cleanly", command.wait(timeout=20), 0)
    finally:
        if command.poll() is None:
            command.kill()
            command.wait()
        api.close()
        remove_work(work)


if __name__ == "__main__":
    {"refusals": test_refusals, "page": test_page, "large": test_large}[sys.argv[2]]()
    print("passed")
