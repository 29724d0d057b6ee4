"""Chromium without a window, driven through chromedriver (W3C WebDriver) with the standard library only."""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from cluster import SKIP, free_port, wait_until

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014",
        "ArrowDown": "\ue015", "Tab": "\ue004", "PageDown": "\ue00f", "End": "\ue010", "Home": "\ue011",
        "Control": "\ue009"}


def skip_without_browser():
    for program in ("chromium", "chromedriver"):
        if not shutil.which(program):
            print(f"skipped: {program} is not installed (apt-get install chromium chromium-driver)")
            raise SystemExit(SKIP)


class Browser:
    """One window. Coordinates are CSS pixels."""

    def __init__(self):
        self.work = tempfile.mkdtemp(prefix="drakkar-browser-")
        port = free_port()
        self.log = open(os.path.join(self.work, "driver.log"), "w")
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=self.log, stderr=self.log)
        self.base = f"http://127.0.0.1:{port}"
        self.session = ""
        try:
            wait_until("chromedriver listens", self.is_ready, 30)
            arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                         "--disable-background-networking", "--disable-component-update", "--disable-sync",
                         "--hide-scrollbars", "--disable-dev-shm-usage", f"--user-data-dir={self.work}/profile"]
            capabilities = {"browserName": "chrome", "goog:chromeOptions": {"args": arguments, "binary": shutil.which("chromium")},
                            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
            made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
            self.session = f"/session/{made['sessionId']}"
        except BaseException:
            self.close()
            raise

    def is_ready(self):
        try:
            return self.call("GET", "/status")["ready"]
        except OSError:
            return False

    def call(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.base + path, data=data, method=method,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {json.load(error)['value']['message']}") from error

    def do(self, method, path, body=None):
        return self.call(method, self.session + path, body)

    def open(self, url):
        self.do("POST", "/url", {"url": url})

    def url(self):
        return self.do("GET", "/url")

    def cdp(self, command, **parameters):
        """A command of the Chrome DevTools Protocol."""
        return self.do("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def resize(self, width, height, scale=1, phone=False):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=phone)
        self.cdp("Emulation.setTouchEmulationEnabled", enabled=phone)

    def dark(self, on):
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def run(self, script, *arguments):
        return self.do("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def text(self, selector="body"):
        return self.run("const e = document.querySelector(arguments[0]); return e ? e.innerText : ''", selector)

    def wait_for(self, text, selector="body", seconds=30):
        wait_until(f"{selector} says {text!r}; it says {self.text(selector)[:500]!r}", lambda: text in self.text(selector), seconds)

    def click(self, selector, text=None):
        """Clicks the first element that matches, or the first with this text."""
        found = wait_until(f"{selector} with {text!r} exists", lambda: self.run(
            "return [...document.querySelectorAll(arguments[0])].find(e => !arguments[1] || e.innerText.includes(arguments[1])) ?? null",
            selector, text))
        self.do("POST", f"/element/{found[ELEMENT]}/click", {})

    def click_at(self, x, y):
        self.do("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
            {"type": "pointerMove", "x": int(x), "y": int(y)}, {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0}]}]})

    def press(self, *keys):
        """Names of KEYS or characters, one after the other."""
        actions = []
        for key in keys:
            value = KEYS.get(key, key)
            actions += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self.do("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def picture(self, path):
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(path).write_bytes(base64.b64decode(self.do("GET", "/screenshot")))

    def console(self):
        """Errors that the page has logged since the last call."""
        return [entry["message"] for entry in self.do("POST", "/se/log", {"type": "browser"}) if entry["level"] == "SEVERE"]

    def requests(self):
        """URLs that the page has requested since the last call."""
        urls = []
        for entry in self.do("POST", "/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                urls.append(message["params"]["request"]["url"])
        return urls

    def close(self):
        try:
            if self.session:
                self.do("DELETE", "")
        except (OSError, AssertionError):
            pass
        self.driver.terminate()
        self.driver.wait(timeout=20)
        self.log.close()
        for _ in range(20):  # Chromium may still write to its profile
            shutil.rmtree(self.work, ignore_errors=True)
            if not os.path.exists(self.work):
                break
            time.sleep(0.1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
