"""The components of a control plane as separate processes, which can be killed one by one."""
import base64
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Servers:
    def __init__(self, drakkar, work):
        self.drakkar = os.path.realpath(drakkar)
        self.work = pathlib.Path(work)
        self.disk = self.work / "disk"
        self.disk.mkdir()
        # A separate disk that can be filled. Without root, this attack is skipped.
        self.has_own_disk = os.geteuid() == 0 and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=512m", "tmpfs", str(self.disk)], capture_output=True,
            check=False).returncode == 0
        self.data = self.disk / "data"
        self.kubeconfig = self.data / "admin.kubeconfig"
        self.ports = {"apiserver": free_port(), "controllers": free_port(), "scheduler": free_port()}
        self.processes = {}
        self.restarts = 0
        self.environment = dict(os.environ)
        self.clock = None
        self._prepare_clock()

    def _prepare_clock(self):
        library = self.work / "clock_shim.so"
        compiler = shutil.which("cc") or shutil.which("gcc")
        if not compiler or subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library),
                                           str(HERE / "clock_shim.c"), "-ldl"], check=False).returncode != 0:
            return
        self.clock = self.work / "clock"
        self.set_clock(0)
        self.environment.update(LD_PRELOAD=str(library), CLOCK_SHIM=str(self.clock))

    def set_clock(self, seconds):
        if self.clock.exists():
            with open(self.clock, "r+b") as file:
                file.write(struct.pack("q", seconds))
        else:
            self.clock.write_bytes(struct.pack("q", seconds))

    def start(self, name):
        if name == "apiserver":
            flags = [f"--data-dir={self.data}", f"--port={self.ports[name]}"]
        else:
            flags = [f"--kubeconfig={self.kubeconfig}", f"--secure-port={self.ports[name]}",
                     "--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s",
                     "--leader-elect-retry-period=500ms"]
        with open(self.work / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen([self.drakkar, name, *flags], stdout=log, stderr=log,
                                                    env=self.environment, start_new_session=True)

    def start_all(self):
        self.start("apiserver")
        self.wait_for_server()
        self.start("controllers")
        self.start("scheduler")

    def wait_for_server(self, seconds=60):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if self.kubeconfig.exists() and self.request("GET", "/readyz")[0] == 200:
                    return
            except OSError:
                pass
            if self.processes["apiserver"].poll() is not None:
                raise AssertionError(f"the API server ended: {self.log('apiserver')[-2000:]}")
            time.sleep(0.05)
        raise AssertionError("the API server does not serve")

    def log(self, name):
        return (self.work / f"{name}.log").read_text(errors="replace")

    def kill(self, name):
        process = self.processes[name]
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.restarts += 1
        self.start(name)
        if name == "apiserver":
            self.wait_for_server()

    def revive(self):
        """Restarts processes that ended by themselves, and returns their names."""
        ended = [name for name, process in self.processes.items() if process.poll() is not None]
        for name in ended:
            self.start(name)
        return ended

    def memory_bytes(self):
        total = 0
        for process in self.processes.values():
            try:
                text = pathlib.Path(f"/proc/{process.pid}/smaps_rollup").read_text()
            except OSError:
                continue
            found = re.search(r"^Pss:\s+(\d+) kB", text, re.M)
            total += int(found[1]) * 1024 if found else 0
        return total

    def credentials(self):
        """Files with the administrator's certificate and key."""
        text = self.kubeconfig.read_text()
        paths = []
        for name in ("client-certificate-data", "client-key-data"):
            path = self.work / name
            path.write_bytes(base64.b64decode(re.search(rf"{name}: (\S+)", text)[1]))
            paths.append(str(path))
        return paths

    def context(self, anonymous=False):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if not anonymous:
            context.load_cert_chain(*self.credentials())
        return context

    def request(self, method, path, body=None):
        from http.client import HTTPSConnection
        connection = HTTPSConnection("127.0.0.1", self.ports["apiserver"], context=self.context(), timeout=10)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def stop(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        for process in self.processes.values():
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self.has_own_disk:
            subprocess.run(["umount", "-l", str(self.disk)], check=False)
