"""A control plane without a node (`drakkar up --node=false`) for tests that act as the node."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIP = 77

NODE = """apiVersion: v1
kind: Node
metadata: {name: n1}
status:
  allocatable: {cpu: "8", memory: 8Gi, pods: "110"}
  capacity: {cpu: "8", memory: 8Gi, pods: "110"}
  conditions: [{type: Ready, status: "True"}]
"""
CLAIM = """apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: any-%(driver)s}
spec: {selectors: [{cel: {expression: 'device.driver == "%(driver)s"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: claim, namespace: default}
spec: {devices: {requests: [{name: dev, exactly: {deviceClassName: "any-%(driver)s"}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: pod, namespace: default}
spec:
  containers: [{name: c, image: "localhost/none:latest", resources: {claims: [{name: dev}]}}]
  resourceClaims: [{name: dev, resourceClaimName: claim}]
"""


def build_go(directory, binary):
    """Builds a Go program, or skips the test."""
    if not shutil.which("go"):
        print("skipped: needs Go")
        raise SystemExit(SKIP)
    built = subprocess.run(["go", "build", "-mod=mod", "-o", binary, "."], cwd=ROOT / "tests/interop" / directory,
                           capture_output=True, text=True, check=False)
    if built.returncode != 0:
        if "dial tcp" in built.stderr or "no such host" in built.stderr or "lookup " in built.stderr:
            print("skipped: the Go modules are not there and cannot be fetched\n" + built.stderr)
            raise SystemExit(SKIP)
        raise AssertionError(built.stderr)


def wait_until(what, condition, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"did not happen within {seconds} s: {what}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class ControlPlane:
    def __init__(self, drakkar):
        self.drakkar = os.path.realpath(drakkar)
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-interop-"))
        self.kubeconfig = self.work / "data/admin.kubeconfig"
        self.environment = dict(os.environ, KUBECONFIG=str(self.kubeconfig))
        self.children = []

    def __enter__(self):
        self.spawn([self.drakkar, "up", "--node=false", f"--data-dir={self.work / 'data'}", f"--port={free_port()}"])
        wait_until("the API server is ready", lambda: self.run("get", "namespaces", "-o", "name"))
        return self

    def spawn(self, command, **options):
        log = open(self.work / "log", "a")
        child = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, **options)
        self.children.append(child)
        return child

    def run(self, *arguments, stdin=None):
        result = subprocess.run([self.drakkar, *arguments], env=self.environment, input=stdin, capture_output=True,
                                text=True, check=False, cwd=ROOT)
        self.error = result.stderr
        return result.stdout if result.returncode == 0 else ""

    def get(self, kind, name):
        text = self.run("get", kind, name, "-o", "json")
        return json.loads(text) if text else {}

    def __exit__(self, kind, *_):
        for child in reversed(self.children):
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
                try:
                    child.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()
        if kind not in (None, SystemExit):
            print((self.work / "log").read_text()[-3000:])
        shutil.rmtree(self.work, ignore_errors=True)
