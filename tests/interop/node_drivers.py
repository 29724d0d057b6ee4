"""A cluster for public drivers that run on a node: network, mount and host name of its own, the kubelet's directories,
and images made of programs in build/peers/drivers."""
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from charts_test import PRIVATE, ChartCluster, is_ready  # noqa: E402
from cluster import ROOT, SKIP, skip_without_containers, wait_until  # noqa: E402

DRIVERS = ROOT / "build/peers/drivers"


def manifests(name):
    """A driver's own files, which lie beside its program: build/peers/drivers/src/NAME."""
    return DRIVERS / "src" / name


def enter(*programs):
    """Skips if the programs are missing; otherwise continues in its own namespaces."""
    skip_without_containers()
    for program in programs:
        if not (DRIVERS / program).exists():
            print(f"skipped: build/peers/drivers/{program} is missing; build it from the driver's sources "
                  f"and link them as build/peers/drivers/src/{program}")
            raise SystemExit(SKIP)
    if not any(os.path.exists(f"{directory}/bridge") for directory in ("/opt/cni/bin", "/usr/lib/cni")):
        print("skipped: needs the package containernetworking-plugins")
        raise SystemExit(SKIP)
    if os.environ.get("DRAKKAR_IN_NETNS") != "1":
        command = ["unshare", "--net", "--mount", "--uts", sys.executable, *sys.argv]
        raise SystemExit(subprocess.run(command, env=dict(os.environ, DRAKKAR_IN_NETNS="1"), check=False).returncode)
    # Without a configured name, drivers use the host's as that of their node.
    subprocess.run(["hostname", "n1"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for directory in (*PRIVATE, "/run/nri", "/run/dranet"):
        os.makedirs(directory, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", directory], check=True)
        # As everything is under systemd: drivers see namespaces that are mounted after they started.
        subprocess.run(["mount", "--make-shared", directory], check=True)


class DriverCluster(ChartCluster):
    def apply(self, text):
        self.run("apply", "-f", "-", stdin=text)

    def is_running(self, name, namespace="default"):
        pod = next((p for p in self.pods(namespace) if p["metadata"]["name"] == name), None)
        return pod is not None and is_ready(pod)

    def run_pod(self, text):
        self.apply(text)
        name = re.search(r"kind: Pod\n+metadata:\s*{?\s*name: ([\w-]+)", text).group(1)
        wait_until(f"pod {name} is ready", lambda: self.is_running(name), 90)
        return name

    def driver_pod(self, app, namespace="kube-system"):
        """The driver's only pod, once it is ready."""
        def ready():
            pods = [p for p in self.pods(namespace) if p["metadata"]["labels"].get("app") == app]
            return pods[0] if len(pods) == 1 and is_ready(pods[0]) else None
        return wait_until(f"the driver {app} is ready", ready, 120)

    def slices(self, driver):
        return [s for s in self.list("resourceslices") if s["spec"]["driver"] == driver]

    def inside(self, pod, *command):
        return self.run("exec", pod, "--", *command)

    def status_line(self, pod, name):
        """A line of /proc/self/status in the container: Cpus_allowed_list, Mems_allowed_list."""
        return self.inside(pod, "sed", "-n", rf"s/^{name}:\s*//p", "/proc/self/status").strip()

    def events(self):
        return json.loads(self.run("get", "events", "-A", "-o", "json"))["items"]

    def __exit__(self, kind, *rest):
        if kind is not None and kind is not SystemExit:
            for event in self.events():
                print(event["involvedObject"]["name"], event["reason"], event["message"][:400])
            for pod in json.loads(self.run("get", "pods", "-A", "-o", "json", check=False) or "{}").get("items", []):
                print(pod["metadata"]["name"], json.dumps(pod["status"])[:1500])
                print(self.run("logs", "-n", pod["metadata"]["namespace"], pod["metadata"]["name"], check=False)[-3000:])
        super().__exit__(kind, *rest)
