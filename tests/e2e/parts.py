"""A cluster of single processes (API server, controllers, scheduler, node, drivers), each of which can be
stopped, killed and started again with other flags: upgrades, downgrades and crashes on one machine."""
import base64
import http.client
import json
import os
import pathlib
import re
import signal
import ssl
import subprocess
import tempfile

from cluster import ROOT, free_port, remove_work, skip_without_containers, wait_until  # noqa: F401

GATE_ON = "--feature-gates=DRAOptionalNodePreparation=true"
GATE_OFF = "--feature-gates=DRAOptionalNodePreparation=false"
BEFORE = "--emulated-version=1.36"


class Parts:
    def __init__(self, drakkar):
        self.drakkar = os.path.realpath(drakkar)
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-e2e-"))
        self.data = self.work / "data"
        self.node_data = self.work / "node"
        self.root = self.node_data / "root"  # what a kubelet has in /var/lib/kubelet
        self.registry = self.root / "plugins_registry"
        self.cdi = self.node_data / "cdi"
        self.kubeconfig = self.data / "admin.kubeconfig"
        self.port, self.node_port = free_port(), free_port()
        self.environment = dict(os.environ, KUBECONFIG=str(self.kubeconfig))
        self.processes = {}
        self.log = open(self.work / "log", "a")
        rootfs = self.work / "busybox.tar.gz"
        subprocess.run([ROOT / "tools/make_busybox_rootfs.sh", rootfs], check=True, cwd=ROOT)
        self.run("image", "import", f"--data-dir={self.node_data}", "--name=localhost/busybox:latest", str(rootfs))

    # Processes.

    def start(self, name, *command, **options):
        assert name not in self.processes, name
        self.processes[name] = subprocess.Popen([self.drakkar, *command] if options.pop("ours", True) else command,
                                                cwd=ROOT, stdout=options.pop("stdout", self.log), stderr=self.log,
                                                **options)
        return self.processes[name]

    def stop(self, name, how=signal.SIGTERM):
        process = self.processes.pop(name, None)
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(how)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def start_control_plane(self, *flags):
        self.start("apiserver", "apiserver", f"--data-dir={self.data}", f"--port={self.port}", *flags)
        wait_until("the API server answers", lambda: self.run("get", "namespaces", "-o", "name", check=False), 60)
        self.start("controllers", "controllers", f"--kubeconfig={self.kubeconfig}", "--secure-port=0", *flags)
        self.start("scheduler", "scheduler", f"--kubeconfig={self.kubeconfig}", "--secure-port=0", *flags)

    def stop_control_plane(self):
        for name in ("scheduler", "controllers", "apiserver"):
            self.stop(name)

    def start_node(self, *flags, network="host"):
        pki = self.data / "pki"
        self.start("node", "node", f"--data-dir={self.node_data}", f"--root-dir={self.root}",
                   f"--kubeconfig={self.kubeconfig}", "--node-name=n1", f"--pod-network={network}",
                   f"--port={self.node_port}", f"--client-ca-file={pki}/ca.crt", f"--tls-cert-file={pki}/apiserver.crt",
                   f"--tls-private-key-file={pki}/apiserver.key", *flags)

    def start_driver(self, name="driver", driver_name="sim.drakkar.io", *flags, **options):
        return self.start(name, "driver", f"--kubeconfig={self.kubeconfig}", "--node-name=n1", f"--driver-name={driver_name}",
                          f"--registry-dir={self.registry}", f"--plugin-dir={self.root}/plugins/{driver_name}",
                          f"--cdi-dir={self.cdi}", *flags, **options)

    # The API.

    def run(self, *arguments, stdin=None, check=True):
        result = subprocess.run([self.drakkar, *arguments], env=self.environment, input=stdin,
                                capture_output=True, text=True, check=False, cwd=ROOT)
        self.errors = result.stderr
        if check and result.returncode != 0:
            raise AssertionError(f"drakkar {' '.join(arguments)}: {result.stderr}")
        return result.stdout if result.returncode == 0 else ""

    def apply(self, manifest):
        self.run("apply", "-f", "-", stdin=manifest)

    def get(self, kind, name=None):
        text = self.run("get", kind, *([name] if name else []), "-o", "json", check=False)
        return json.loads(text) if text else None

    def phase(self, pod):
        return (self.get("pod", pod) or {}).get("status", {}).get("phase")

    def wait_phase(self, pod, phase, seconds=20):
        self.run("wait", "--for=jsonpath={.status.phase}=" + phase, f"--timeout={seconds}s", f"pod/{pod}")

    def events(self, reason, about=None):
        items = (self.get("events") or {}).get("items", [])
        return [e["message"] for e in items
                if e["reason"] == reason and (about is None or e["involvedObject"]["name"] == about)]

    def delete_pod(self, pod, seconds):
        """Fails unless it exits in time."""
        self.run("delete", "pod", pod, f"--timeout={seconds}s")

    def metric(self, name):
        """The sum of all node metrics lines with this prefix."""
        text = self.node_get("metrics")
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))

    def node_get(self, path):
        """GET from the node's own port through the API server."""
        return self.api("GET", f"/api/v1/nodes/n1/proxy/{path}")

    def api(self, method, path, body=None):
        """A request with the administrator's certificate; returns the response text, whatever its status."""
        if not hasattr(self, "context"):
            text = self.kubeconfig.read_text()
            pem = self.work / "admin.pem"
            pem.write_bytes(b"".join(base64.b64decode(re.search(rf"{field}: (\S+)", text).group(1))
                                     for field in ("client-certificate-data", "client-key-data")))
            self.context = ssl.create_default_context(cafile=self.data / "pki/ca.crt")
            self.context.load_cert_chain(pem)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=20)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {"Content-Type": "application/json"})
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def conmons(self):
        """PIDs of the container monitors of this cluster, by container ID."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if words and os.path.basename(words[0]) == "conmon" and any(str(self.work) in w for w in words):
                found[int(entry.name)] = words
        return found

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        failed = kind is not None and kind is not SystemExit
        try:
            if failed and "apiserver" in self.processes and "node" in self.processes:
                self.run("delete", "pods", "--all", "--grace-period=0", "--force", "--timeout=10s", check=False)
        finally:
            for name in reversed(list(self.processes)):
                self.stop(name)
        for pid in self.conmons() if failed else ():
            os.kill(pid, signal.SIGKILL)  # ours: they name our directory
        if failed:
            print((self.work / "log").read_text()[-6000:])
        remove_work(self.work)
