#!/usr/bin/env python3
"""Helm installs, upgrades and removes a public DRA driver from its own chart, unmodified, and the driver's own examples
run: dra-example-driver, a DaemonSet with an admission policy. Runs in network and mount namespaces of its own, with the
kubelet's default directories."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

for folder in ("e2e", "security"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / folder))
from cluster import ROOT, SKIP, Cluster, skip_without_containers, wait_until  # noqa: E402
from identities import Identities, Identity  # noqa: E402

PEERS = ROOT / "build/peers/charts"
HELM = PEERS / "bin/helm"
DRIVER = PEERS / "dra-example-driver"
NAMESPACE = "dra-example-driver"
# The directories that the chart mounts, and that the node shares with a kubelet.
PRIVATE = ("/var/lib/kubelet", "/run/cdi", "/run/netns")


class ChartCluster(Cluster):
    network_flags = ("--root-dir=/var/lib/kubelet",)

    def helm(self, *arguments):
        result = subprocess.run([HELM, *arguments, "--namespace", NAMESPACE], env=dict(self.environment, HOME=str(self.work)),
                                capture_output=True, text=True, check=False)
        if result.returncode != 0:
            state = self.run("get", "pods,daemonsets,events", "-n", NAMESPACE, check=False)
            raise AssertionError(f"helm {' '.join(map(str, arguments))}: {result.stderr}\n{state}")
        return result.stdout

    def import_image(self, name, programs):
        """Imports an image that holds `programs` ({path in the image: path here}) with the libraries they need."""
        archive = self.work / f"{re.sub('[^a-z0-9]', '-', name)}.tar.gz"
        files = dict(programs)
        for program in programs.values():
            listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
            for library in re.findall(r"(/\S+) \(0x", listed):
                files[library] = library
        with tarfile.open(archive, "w:gz") as tar:
            for inside, outside in files.items():
                tar.add(os.path.realpath(outside), arcname=inside.lstrip("/"))
            for directory in ("tmp", "proc", "sys", "dev", "etc", "var"):
                entry = tarfile.TarInfo(directory)
                entry.type, entry.mode = tarfile.DIRTYPE, 0o1777
                tar.addfile(entry)
        self.run("image", "import", f"--data-dir={self.data}", f"--name={name}", str(archive))

    def devices(self):
        """The devices that the driver publishes."""
        slices = [s for s in self.list("resourceslices") if s["spec"]["driver"] == "gpu.example.com"]
        return sorted(device["name"] for s in slices for device in s["spec"]["devices"])

    def pods(self, namespace):
        return json.loads(self.run("get", "pods", "-n", namespace, "-o", "json"))["items"]


def images_of(text):
    return set(re.findall(r"image: \"?([^\s\"]+)", text))


def is_ready(pod):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


def run_example(cluster, path):
    """Applies one of the driver's examples, and returns the devices that each container found in its environment."""
    namespace = path.stem
    cluster.run("apply", "-f", str(path))
    wanted = len(re.findall("kind: Pod\n", path.read_text()))

    def all_ready():
        pods = cluster.pods(namespace)
        return pods if len(pods) == wanted and all(map(is_ready, pods)) else None
    pods = wait_until(f"the pods of {path.name} are ready", all_ready, 90)
    seen = {}
    for pod in pods:
        for container in pod["spec"]["containers"]:
            def devices():
                log = cluster.run("logs", "-n", namespace, pod["metadata"]["name"], "-c", container["name"])
                return re.findall(r'GPU_DEVICE_\d+="(gpu-\d+)"', log)
            seen[pod["metadata"]["name"], container["name"]] = wait_until(
                f"{container['name']} of {path.name} prints its devices", devices)
    return seen


def check_examples(cluster):
    demos = DRIVER / "demo"
    one = run_example(cluster, demos / "gpu-test1.yaml")
    held = [device for devices in one.values() for device in devices]
    assert len(held) == len(set(held)) == 2, f"two pods, two devices: {one}"
    two = run_example(cluster, demos / "gpu-test2.yaml")
    assert len(set(two["pod0", "ctr0"])) == 2, f"one container, two devices: {two}"
    three = run_example(cluster, demos / "gpu-test3.yaml")
    assert three["pod0", "ctr0"] == three["pod0", "ctr1"], f"two containers share a claim: {three}"
    four = run_example(cluster, demos / "gpu-test4.yaml")
    assert four["pod0", "ctr0"] == four["pod1", "ctr0"], f"two pods share a claim: {four}"
    five = run_example(cluster, demos / "gpu-test5.yaml")
    assert five["pod0", "ts-ctr0"] == five["pod0", "ts-ctr1"] != five["pod0", "sp-ctr0"], five
    held += two["pod0", "ctr0"] + three["pod0", "ctr0"] + four["pod0", "ctr0"]
    held += five["pod0", "ts-ctr0"] + five["pod0", "sp-ctr0"]
    assert len(held) == len(set(held)) == 8, f"no device is held twice: {held}"
    for number in (1, 2, 3, 4, 5):
        cluster.run("delete", "--ignore-not-found", "-f", str(demos / f"gpu-test{number}.yaml"))
    run_example(cluster, demos / "gpu-test6.yaml")


def check_policy(cluster):
    """The chart's policy confines the driver's account to slices of the node that its pod runs on."""
    account = json.loads(cluster.run("get", "daemonsets", "-n", NAMESPACE, "-o", "json"))["items"][0]
    name = account["spec"]["template"]["spec"]["serviceAccountName"]
    stem = Identities(cluster.data, cluster.work, cluster.ports[0]).certificate("admin", "admin", ["system:masters"])
    admin = Identity(cluster.data / "pki/ca.crt", stem)
    manifest = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "foreign"},
                "spec": {"driver": "gpu.example.com", "nodeName": "other", "devices": [],
                         "pool": {"name": "other", "generation": 1, "resourceSliceCount": 1}}}
    status, answer = admin.ask(cluster.ports[0], "POST", "/apis/resource.k8s.io/v1/resourceslices", json.dumps(manifest),
                               headers=[("Impersonate-User", f"system:serviceaccount:{NAMESPACE}:{name}"),
                                        ("Impersonate-Extra-made-by", "this test")])
    assert status == 422 and "no node association found for user" in answer, (status, answer)


def check_chart(drakkar):
    with ChartCluster(drakkar) as cluster:
        chart = DRIVER / "chart"
        rendered = subprocess.run([HELM, "template", "x", chart, "--namespace", NAMESPACE, "--kube-version=1.37.0"], check=True,
                                  capture_output=True, text=True).stdout
        for image in images_of(rendered):
            cluster.import_image(image, {"usr/bin/dra-example-kubeletplugin": PEERS / "bin/dra-example-kubeletplugin"})
        examples = "".join(path.read_text() for path in (DRIVER / "demo").glob("gpu-test*.yaml"))
        for image in images_of(examples):
            cluster.import_image(image, {"bin/bash": shutil.which("bash"), "bin/sleep": shutil.which("sleep")})
        cluster.start()
        cluster.helm("install", "dra-example-driver", chart, "--create-namespace", "--wait", "--timeout=90s")
        wait_until("the driver publishes its devices", lambda: len(cluster.devices()) == 8)
        print("ok: installed", flush=True)
        check_policy(cluster)
        print("ok: the chart's admission policy holds", flush=True)
        check_examples(cluster)
        print("ok: its examples run", flush=True)

        # The agent is killed and started again: driver, devices and the running pod stay.
        before = cluster.pods("gpu-test6")[0]["status"]["containerStatuses"][0]
        cluster.kill()
        cluster.start()
        wait_until("the devices are there", lambda: len(cluster.devices()) == 8)
        after = cluster.pods("gpu-test6")[0]["status"]["containerStatuses"][0]
        assert after["restartCount"] == 0 and after["containerID"] == before["containerID"], (before, after)
        cluster.run("delete", "--ignore-not-found", "-f", str(DRIVER / "demo/gpu-test6.yaml"))
        print("ok: restarted", flush=True)

        cluster.helm("upgrade", "dra-example-driver", chart, "--set=kubeletPlugin.numDevices=4", "--wait", "--timeout=90s")
        wait_until("the new driver publishes its devices", lambda: len(cluster.devices()) == 4, 60)
        assert '"revision":2' in cluster.helm("history", "dra-example-driver", "--output=json")
        print("ok: upgraded", flush=True)

        cluster.helm("uninstall", "dra-example-driver", "--wait", "--timeout=90s")
        wait_until("the driver's pods are gone", lambda: not cluster.pods(NAMESPACE), 60)
        wait_until("its devices are gone", lambda: not cluster.devices(), 90)
        for kind in ("daemonsets", "validatingadmissionpolicies", "deviceclasses"):
            assert "gpu.example.com" not in cluster.run("get", kind, "-A", "-o", "yaml"), kind
        print("ok: removed", flush=True)


def main():
    skip_without_containers()
    if not HELM.exists() or not (DRIVER / "chart").exists():
        print("skipped: Helm and the drivers are not built; run ./dev peers charts")
        raise SystemExit(SKIP)
    if not any(os.path.exists(f"{directory}/bridge") for directory in ("/opt/cni/bin", "/usr/lib/cni")):
        print("skipped: needs the package containernetworking-plugins")
        raise SystemExit(SKIP)
    if os.environ.get("DRAKKAR_IN_NETNS") != "1":
        command = ["unshare", "--net", "--mount", sys.executable, *sys.argv]
        raise SystemExit(subprocess.run(command, env=dict(os.environ, DRAKKAR_IN_NETNS="1"), check=False).returncode)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for directory in PRIVATE:
        os.makedirs(directory, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", directory], check=True)
    check_chart(sys.argv[1])


if __name__ == "__main__":
    main()
