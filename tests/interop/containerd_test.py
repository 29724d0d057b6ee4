"""`drakkar up` with its own containerd: pods, devices, logs, commands, and restarts of both.

usage: containerd_test.py DRAKKAR
"""
import hashlib
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from cluster import ROOT, SKIP, Cluster, remove_work, skip_without_containers, wait_until  # noqa: E402

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  terminationGracePeriodSeconds: 1
  resourceClaims: [{{name: gpu, resourceClaimTemplateName: single}}]
  containers:
  - name: main
    image: localhost/busybox:latest
    imagePullPolicy: IfNotPresent
    command: [/bin/sh, -c, "{script}"]
    resources: {{limits: {{memory: 64Mi}}, claims: [{{name: gpu}}]}}
  restartPolicy: Never
"""
TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: any}
spec: {}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: single}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: any}}]}}}
"""


def find_programs():
    for folder in (os.environ.get("DRAKKAR_CONTAINERD", ""), str(ROOT / "build/peers/containerd"), "/usr/bin"):
        if folder and os.access(f"{folder}/containerd", os.X_OK):
            return folder
    print("skipped: there is no containerd; run ./dev peers containerd, or apt-get install containerd")
    raise SystemExit(SKIP)


def oci_archive(path, name, rootfs, entrypoint):
    blobs = {}

    def add(kind, content):
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}
    layer = add("layer.v1.tar", rootfs)
    config = add("config.v1+json", json.dumps({
        "architecture": "amd64", "os": "linux", "config": {"Entrypoint": entrypoint},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}).encode())
    manifest = add("manifest.v1+json", json.dumps({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": [layer]}).encode())
    manifest["annotations"] = {"io.containerd.image.name": name}
    files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
             "index.json": json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode()}
    files.update({f"blobs/sha256/{digest}": content for digest, content in blobs.items()})
    with tarfile.open(path, "w") as archive:
        for file, content in files.items():
            info = tarfile.TarInfo(file)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


class Containerd:
    def __init__(self, programs, work):
        self.programs, self.work = programs, work
        self.socket = f"{work}/containerd.sock"
        plugins = next((d for d in ("/usr/lib/cni", "/opt/cni/bin") if os.access(f"{d}/ptp", os.X_OK)), None)
        (work / "cni").mkdir()
        self.has_network = plugins is not None
        if self.has_network:
            (work / "cni/10-test.conflist").write_text(json.dumps({
                "cniVersion": "0.4.0", "name": "drakkar-test", "plugins": [
                    {"type": "ptp", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.231.0.0/24"}]],
                                             "dataDir": f"{work}/ipam"}}]}))
        (work / "config.toml").write_text(f"""
version = 2
root = "{work}/root"
state = "{work}/state"
[grpc]
  address = "{self.socket}"
[ttrpc]
  address = "{work}/ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "{work}/opt"
[plugins."io.containerd.nri.v1.nri"]
  disable = true
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    conf_dir = "{work}/cni"
    bin_dir = "{plugins}"
""")
        self.start()
        rootfs = work / "busybox.tar.gz"
        subprocess.run([ROOT / "tools/make_busybox_rootfs.sh", rootfs], check=True, cwd=ROOT)
        layer = subprocess.run(["gzip", "-dc", rootfs], check=True, capture_output=True).stdout
        pause = ["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done"]
        for name, entrypoint in (("localhost/busybox:latest", ["/bin/sh"]), ("localhost/pause:1", pause)):
            oci_archive(work / "image.tar", name, layer, entrypoint)
            wait_until(f"{name} is imported", lambda: subprocess.run(
                [f"{programs}/ctr", "-a", self.socket, "-n", "k8s.io", "images", "import", work / "image.tar"],
                capture_output=True, check=False).returncode == 0)

    def start(self):
        log = open(self.work / "containerd.log", "a")
        self.process = subprocess.Popen([f"{self.programs}/containerd", "-c", f"{self.work}/config.toml"], stdout=log, stderr=log,
                                        env=dict(os.environ, PATH=f"{self.programs}:{os.environ['PATH']}"))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """Shims outlive their containerd."""
        self.kill()
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and str(self.work) in (entry / "cmdline").read_bytes().decode(errors="replace"):
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                pass


def phase(cluster, name):
    return (cluster.get("pod", name) or {}).get("status", {}).get("phase")


def check(cluster, containerd):
    cluster.run("apply", "-f", "-", stdin=TEMPLATE)
    node = cluster.get("node", "n1")
    version = node["status"]["nodeInfo"]["containerRuntimeVersion"]
    assert version.startswith("containerd://"), version
    ready = {c["type"]: c for c in node["status"]["conditions"]}["Ready"]
    assert ready["status"] == "True", ready

    cluster.run("apply", "-f", "-", stdin=POD.format(name="short", script="env | grep DRAKKAR; echo bye >&2; exit 3"))
    wait_until("the pod has failed", lambda: phase(cluster, "short") == "Failed", 60)
    pod = cluster.get("pod", "short")
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3, pod["status"]
    log = cluster.run("logs", "short")
    assert "DRAKKAR" in log and "bye" in log, f"the device's variables and both streams: {log}"

    script = "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done"
    started = time.monotonic()
    cluster.run("apply", "-f", "-", stdin=POD.format(name="long", script=script))
    wait_until("the pod runs", lambda: phase(cluster, "long") == "Running", 60)
    print(f"apply to Running: {time.monotonic() - started:.2f} s")
    assert cluster.run("exec", "long", "--", "sh", "-c", "echo $((6*7))").strip() == "42"
    assert cluster.run("exec", "-i", "long", "--", "cat", stdin="to and fro\n") == "to and fro\n"
    status = cluster.get("pod", "long")["status"]
    assert status["podIP"].startswith("10.231.0."), status["podIP"]
    container = status["containerStatuses"][0]["containerID"]

    containerd.kill()
    wait_until("the node is not ready", lambda: any(
        c["type"] == "Ready" and c["status"] == "False" and "runtime is down" in c["message"]
        for c in cluster.get("node", "n1")["status"]["conditions"]), 30)
    containerd.start()
    wait_until("commands run again", lambda: cluster.run("exec", "long", "--", "echo", "back", check=False).strip() == "back", 30)
    cluster.kill()
    cluster.start()
    wait_until("commands run with the next agent",
               lambda: cluster.run("exec", "long", "--", "echo", "back", check=False).strip() == "back", 30)
    status = cluster.get("pod", "long")["status"]
    assert status["containerStatuses"][0]["containerID"] == container, "the same container"
    assert status["containerStatuses"][0]["restartCount"] == 0
    cluster.run("delete", "pod", "long", "short")
    wait_until("both are gone", lambda: not cluster.list("pods"), 30)
    tasks = containerd.work / "state/io.containerd.runtime.v2.task/k8s.io"
    wait_until("nothing is left in containerd", lambda: not tasks.exists() or not list(tasks.iterdir()), 30)


def main():
    skip_without_containers()
    programs = find_programs()
    cluster = Cluster(sys.argv[1])
    work = cluster.work / "containerd"
    work.mkdir()
    containerd = Containerd(programs, work)
    try:
        if not containerd.has_network:
            print("skipped: needs the CNI plugin ptp: apt-get install containernetworking-plugins")
            raise SystemExit(SKIP)
        cluster.flags += (f"--container-runtime-endpoint=unix://{containerd.socket}",)
        cluster.start()
        check(cluster, containerd)
    except BaseException:
        print((cluster.work / "up.log").read_text()[-6000:] if (cluster.work / "up.log").exists() else "")
        print((work / "containerd.log").read_text()[-3000:])
        raise
    finally:
        cluster.stop()
        containerd.end()
        remove_work(cluster.work)


main()
