"""A separate `drakkar up` for an end-to-end test: new directory, free ports, real containers."""
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


def skip_without_containers():
    if os.geteuid() != 0 or not shutil.which("runc") or not shutil.which("conmon"):
        print("skipped: needs root, runc and conmon")
        raise SystemExit(SKIP)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until(what, condition, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"did not happen within {seconds} s: {what}")


def remove_work(work):
    """Removes a test's directory after unmounting what a node left there: a mount may lead anywhere."""
    def mounts():
        lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
        return [line.split()[4] for line in lines if line.split()[4].startswith(f"{work}/")]
    for point in reversed(mounts()):
        subprocess.run(["umount", "-l", point], check=False)
    if mounts():
        print(f"left alone, something is mounted in it: {work}")
        return
    shutil.rmtree(work, ignore_errors=True)


def scheduler_configuration(binding_timeout):
    """Short lease times, so that a standby takes over quickly."""
    return f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {{leaderElect: true, leaseDuration: 4s, renewDeadline: 3s, retryPeriod: 500ms}}
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: DynamicResources
    args: {{bindingTimeout: {binding_timeout}}}
"""


class Cluster:
    # Most tests are not about the network: sharing the host's is faster and leaves no bridge on the machine.
    network_flags = ("--pod-network=host",)

    def __init__(self, drakkar, *flags):
        self.drakkar = os.path.realpath(drakkar)
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-e2e-"))
        self.data = self.work / "data"
        self.flags = flags
        self.ports = (free_port(), free_port())
        self.process = None
        self.environment = dict(os.environ, KUBECONFIG=str(self.data / "admin.kubeconfig"))
        rootfs = self.work / "busybox.tar.gz"
        subprocess.run([ROOT / "tools/make_busybox_rootfs.sh", rootfs], check=True, cwd=ROOT)
        self.run("image", "import", f"--data-dir={self.data}", "--name=localhost/busybox:latest", str(rootfs))

    def start(self):
        self.log = open(self.work / "up.log", "a")
        self.process = subprocess.Popen(
            [self.drakkar, "up", f"--data-dir={os.path.relpath(self.data, ROOT)}", f"--port={self.ports[0]}",
             f"--node-port={self.ports[1]}", "--node-name=n1", "--devices=examples/devices.yaml",
             *self.network_flags, *self.flags], cwd=ROOT, stdout=self.log, stderr=self.log)
        wait_until("devices are published",
                   lambda: self.run("get", "resourceslices", "-o", "name", check=False).strip(), 60)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def run(self, *arguments, stdin=None, check=True):
        result = subprocess.run([self.drakkar, *arguments], env=self.environment, input=stdin,
                                capture_output=True, text=True, check=False, cwd=ROOT)
        if check and result.returncode != 0:
            raise AssertionError(f"drakkar {' '.join(arguments)}: {result.stderr}")
        return result.stdout if result.returncode == 0 else ""

    def get(self, kind, name):
        text = self.run("get", kind, name, "-o", "json", check=False)
        return json.loads(text) if text else None

    def list(self, kind):
        text = self.run("get", kind, "-o", "json", check=False)
        return json.loads(text).get("items", []) if text else []

    def processes(self, program):
        """PIDs of `program` with our directory on their command line."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if words and os.path.basename(words[0]) == program and any(str(self.work) in w for w in words):
                found.append((int(entry.name), words))
        return found

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def __enter__(self):
        return self

    def end_containers(self):
        """Cleans up after a failed test: containers outlive the node."""
        for monitor, _ in self.processes("conmon"):
            try:
                children = pathlib.Path(f"/proc/{monitor}/task/{monitor}/children").read_text().split()
                for child in children:
                    os.kill(int(child), signal.SIGKILL)
            except (OSError, ValueError):
                pass  # it has just ended

    def __exit__(self, kind, *_):
        self.stop()
        self.end_containers()
        if kind is not None and kind is not SystemExit:
            print((self.work / "up.log").read_text()[-4000:])
        remove_work(self.work)
