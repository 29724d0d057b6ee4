#!/usr/bin/env python3
"""KEP-5304 with real containers: the integration and e2e lists of its test plan.

Init containers, sidecars and containers read only the metadata of the requests they use; direct claims
and claims from templates; several devices, drivers and pods; updates reach running containers; drivers
restart; nothing is left behind, and nothing is written if the flag is off.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from cluster import ROOT, Cluster, skip_without_containers, wait_until

KEP = "/var/run/dra-device-attributes"
KUBERNETES = "/var/run/kubernetes.io/dra-device-attributes"
DEVICES = """count: 6
attributes:
  model: %s
  generation: 2
  ecc: true
  driverVersion: {version: 1.4.0}
"""

CLASSES = """apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: sim}
spec: {selectors: [{cel: {expression: device.driver == "sim.drakkar.io"}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: late}
spec: {selectors: [{cel: {expression: device.driver == "late.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: any}
spec: {selectors: [{cel: {expression: "'model' in device.attributes[device.driver]"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: direct}
spec:
  devices:
    requests:
    - {name: gpu, exactly: {deviceClassName: sim, count: 2}}
    - {name: other, exactly: {deviceClassName: sim}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: gpu, firstAvailable: [{name: none, deviceClassName: sim, count: 30}, {name: single, deviceClassName: sim}]}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: deferred}
spec: {devices: {requests: [{name: nic, exactly: {deviceClassName: late}}]}}
"""

# What a container sees: the files, then the output of the reader or its error.
SEE = "find %s %s -name '*-metadata.json' 2>/dev/null | sort; " % (KEP, KUBERNETES)


def pod(name, claims, containers, init=(), grace=1):
    """Containers are (name, requests as claim/request or claim, script[, sidecar])."""
    def container(entry):
        uses = []
        for use in entry[1]:
            claim, _, request = use.partition("/")
            uses.append({"name": claim, **({"request": request} if request else {})})
        return {"name": entry[0], "image": "localhost/busybox:latest", "command": ["sh", "-c", entry[2]],
                "resources": {"claims": uses} if uses else {},
                **({"restartPolicy": "Always"} if len(entry) > 3 else {})}
    return json.dumps({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": grace,
                 "resourceClaims": [{"name": n, k: v} for n, k, v in claims],
                 "initContainers": [container(c) for c in init],
                 "containers": [container(c) for c in containers]}})


class MetadataCluster(Cluster):
    """`drakkar up` with an image that has drakkar-metadata, and devices that can be reconfigured."""

    def __init__(self, drakkar, reader, *flags):
        super().__init__(drakkar, *flags)
        self.devices = self.work / "devices.yaml"
        self.devices.write_text(DEVICES % "Longship 8")
        self.flags = (*flags, f"--devices={self.devices}")
        root = pathlib.Path(tempfile.mkdtemp(dir=self.work))
        subprocess.run(["tar", "xzf", self.work / "busybox.tar.gz", "-C", root], check=True)
        shutil.copy(reader, root / "bin/drakkar-metadata")
        archive = self.work / "reader.tar.gz"
        subprocess.run(["tar", "czf", archive, "-C", root, "."], check=True)
        self.run("image", "import", f"--data-dir={self.data}", "--name=localhost/busybox:latest", str(archive))
        self.late = None

    def phase(self, name):
        return (self.get("pod", name) or {}).get("status", {}).get("phase")

    def apply(self, text):
        self.run("apply", "-f", "-", stdin=text)

    def logs(self, name, container):
        return self.run("logs", name, "-c", container, check=False)

    def driver(self):
        """The pid of the reference driver that `up` runs."""
        found = [p for p, words in self.processes("drakkar") if "driver" in words and "--parent-pid" in " ".join(words)]
        return found[0] if found else None

    def describe(self, model):
        self.devices.write_text(DEVICES % model)
        os.kill(self.driver(), signal.SIGHUP)

    def start_late_driver(self, text):
        """A second driver, whose metadata comes after prepare."""
        self.late_devices = self.work / "late.yaml"
        self.late_devices.write_text(text)
        plugins = self.data / "kubelet/plugins_registry"
        self.late = subprocess.Popen(
            [self.drakkar, "driver", "--node-name=n1", "--driver-name=late.example.com", "--enable-device-metadata",
             f"--kubeconfig={self.data / 'admin.kubeconfig'}", f"--registry-dir={plugins}",
             f"--cdi-dir={self.cdi()}", f"--devices={self.late_devices}"], cwd=ROOT, stdout=self.log, stderr=self.log)

    def cdi(self):
        return self.data / "cdi"

    def host_files(self):
        return sorted(str(p) for p in self.data.glob("kubelet/plugins/*/dra-device-metadata/*/*/metadata.json"))

    def specs(self):
        return sorted(p.name for p in self.cdi().glob("*_metadata_*"))

    def stop(self):
        if self.late:
            self.late.terminate()
            self.late.wait()
        super().stop()


def check_containers_see_their_requests(cluster):
    read = SEE + "drakkar-metadata direct gpu -o json; drakkar-metadata direct other -o json; exit 0"
    stay = read + "; sleep 600"
    # Without the shell's complaint: it comes in pieces, which the log may mix with the lines that follow.
    write = f"(echo x > {KEP}/direct/gpu/sim.drakkar.io-metadata.json) 2>/dev/null && echo written; "
    cluster.apply(pod("many", [("direct", "resourceClaimName", "direct")],
                      containers=[("gpu", ["direct/gpu"], write + stay.replace("exit 0; ", "")),
                                  ("other", ["direct/other"], stay.replace("exit 0; ", "")),
                                  ("both", ["direct"], stay.replace("exit 0; ", "")),
                                  ("none", [], stay.replace("exit 0; ", ""))],
                      init=[("first", ["direct/gpu"], read),
                            ("side", ["direct/other"], stay.replace("exit 0; ", ""), "sidecar")]))
    wait_until("the pod runs", lambda: cluster.phase("many") == "Running", 60)
    paths = {r: [f"{KEP}/direct/{r}/sim.drakkar.io-metadata.json",
                 f"{KUBERNETES}/resourceclaims/direct/{r}/sim.drakkar.io-metadata.json"] for r in ("gpu", "other")}
    expected = {"gpu": ["gpu"], "first": ["gpu"], "other": ["other"], "side": ["other"],
                "both": ["gpu", "other"], "none": []}
    for container, requests in expected.items():
        wait_until(f"{container} has looked",
                   lambda c=container: cluster.logs("many", c).count("\n}\n") >= len(expected[c]))
        log = cluster.logs("many", container)
        seen = [line for line in log.splitlines() if line.startswith("/var/run/")]
        assert seen == sorted(p for r in requests for p in paths[r]), (container, seen)
        assert "written" not in log, "the mount is read-only"
        for request in requests:
            assert f'"name": "{request}"' in log, (container, log)
    host = cluster.host_files()
    assert [p.split("dra-device-metadata/")[1] for p in host] == [
        "default_direct/gpu/metadata.json", "default_direct/other/metadata.json"], host
    for path in map(pathlib.Path, host):
        mounted = path.with_name("sim.drakkar.io-metadata.json")
        assert sorted(path.parent.iterdir()) == [path, mounted] and mounted.read_text() == path.read_text(), path
        assert oct(path.stat().st_mode & 0o777) == oct(mounted.stat().st_mode & 0o777) == "0o644", path
    document = json.loads(pathlib.Path(host[0]).read_text())
    claim = cluster.get("resourceclaim", "direct")
    assert document["apiVersion"] == "metadata.resource.k8s.io/v1alpha1", document
    assert document["kind"] == "DeviceMetadata"
    assert document["metadata"] == {"name": "direct", "namespace": "default", "uid": claim["metadata"]["uid"],
                                    "generation": 1}, document
    assert [r["name"] for r in document["requests"]] == ["gpu"]
    results = [r for r in claim["status"]["allocation"]["devices"]["results"] if r["request"] == "gpu"]
    devices = document["requests"][0]["devices"]
    assert [d["name"] for d in devices] == [r["device"] for r in results] and len(devices) == 2, "all devices"
    assert devices[0]["attributes"] == {"driverVersion": {"version": "1.4.0"}, "ecc": {"bool": True},
                                        "generation": {"int": 2}, "model": {"string": "Longship 8"}}, devices
    assert cluster.specs() == [f"sim.drakkar.io_metadata_{claim['metadata']['uid']}_{r}.json" for r in ("gpu", "other")]


def check_updates_and_restarts(cluster):
    """A running container sees updates, also from a driver that has been restarted."""
    follow = ("while true; do drakkar-metadata direct gpu -o jsonpath='{.metadata.generation} "
              "{.requests[0].devices[0].attributes.model.string}'; sleep 0.2; done")
    cluster.apply(pod("follower", [("direct", "resourceClaimName", "direct")], [("c", ["direct/gpu"], follow)]))
    wait_until("a second pod of the claim runs", lambda: cluster.phase("follower") == "Running", 60)
    wait_until("it reads generation 1: prepare again changed nothing",
               lambda: "1 Longship 8\n" in cluster.logs("follower", "c"))
    cluster.describe("Longship 9")
    wait_until("the update is seen inside", lambda: "2 Longship 9\n" in cluster.logs("follower", "c"))
    before = cluster.driver()
    os.kill(before, signal.SIGKILL)
    wait_until("the driver is back", lambda: cluster.driver() not in (None, before), 60)
    files = cluster.host_files()
    wait_until("it registers", lambda: cluster.run("get", "resourceslices", "-o", "name", check=False).strip())
    time.sleep(1)  # clean-up at start would have happened by now
    assert cluster.host_files() == files, "a restart keeps what is in use"
    cluster.describe("Longship 10")
    wait_until("updates go on after a restart", lambda: "3 Longship 10\n" in cluster.logs("follower", "c"))
    lines = cluster.logs("follower", "c").splitlines()
    assert set(lines) == {"1 Longship 8", "2 Longship 9", "3 Longship 10"}, set(lines)
    cluster.run("delete", "pod", "follower")
    wait_until("it is gone", lambda: cluster.get("pod", "follower") is None)
    assert cluster.host_files() == files, "another pod still uses the claim"
    cluster.describe("Longship 8")


def check_templates_and_subrequests(cluster):
    cluster.apply(pod("templated", [("dev", "resourceClaimTemplateName", "one")],
                      [("c", ["dev"], SEE + "drakkar-metadata dev gpu -o env; sleep 600")]))
    wait_until("it runs", lambda: cluster.phase("templated") == "Running", 60)
    claim = cluster.get("pod", "templated")["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    log = wait_until("it has read", lambda: "DRA_DEV_GPU_0_DEVICE" in cluster.logs("templated", "c")
                     and cluster.logs("templated", "c"))
    assert f"{KEP}/{claim}/gpu/sim.drakkar.io-metadata.json" in log, log
    assert f"{KUBERNETES}/resourceclaimtemplates/dev/gpu/sim.drakkar.io-metadata.json" in log, log
    host = next(p for p in cluster.host_files() if claim in p)
    document = json.loads(pathlib.Path(host).read_text())
    assert document["podClaimName"] == "dev"
    assert document["requests"][0]["name"] == "gpu/single", "the subrequest that was chosen"
    cluster.run("delete", "pod", "templated")
    wait_until("its files are gone", lambda: not [p for p in cluster.host_files() if claim in p])


def check_deferred(cluster):
    """Mounted but empty at first; the first content is generation 1. Readers wait."""
    cluster.start_late_driver("count: 1\nattributes: {model: Skiff}\ndeferMetadata: true\n")
    wait_until("its devices are published", lambda: "late.example.com" in cluster.run(
        "get", "resourceslices", "-o", "jsonpath={.items[*].spec.driver}", check=False), 60)
    cluster.apply(pod("waits", [("nic", "resourceClaimName", "deferred")], [(
        "c", ["nic/nic"], f"wc -c < {KEP}/deferred/nic/late.example.com-metadata.json; "
        "drakkar-metadata deferred nic; echo status $?; "
        "drakkar-metadata deferred nic --wait 30 -o jsonpath='{.metadata.generation}'; sleep 600")]))
    wait_until("it runs", lambda: cluster.phase("waits") == "Running", 60)
    wait_until("it finds an empty file", lambda: cluster.logs("waits", "c").startswith("0\n"))
    wait_until("and no metadata yet", lambda: "status 3\n" in cluster.logs("waits", "c"))
    cluster.late_devices.write_text("count: 1\nattributes: {model: Skiff}\n")
    cluster.late.send_signal(signal.SIGHUP)
    wait_until("the first content is generation 1", lambda: cluster.logs("waits", "c").endswith("\n1\n"))
    cluster.run("delete", "pod", "waits")
    wait_until("it is gone", lambda: cluster.get("pod", "waits") is None)


def check_until_the_end(cluster):
    """A container reads while it terminates; a sidecar reads after the main container has exited."""
    read = "drakkar-metadata dev gpu -o jsonpath='{.metadata.generation}'"
    cluster.apply(pod("ends", [("dev", "resourceClaimTemplateName", "one")],
                      [("c", ["dev"], f"trap 'echo asked to end; {read}; exit 0' TERM; echo ready; while true; do sleep 0.1; done")],
                      grace=20))
    wait_until("it runs", lambda: cluster.logs("ends", "c") == "ready\n", 60)
    # The log is deleted with the pod, so follow it to the end.
    follower = subprocess.Popen([cluster.drakkar, "logs", "-f", "ends", "-c", "c"], env=cluster.environment, cwd=ROOT,
                                stdout=subprocess.PIPE, text=True)
    cluster.run("delete", "pod", "ends")
    followed, _ = follower.communicate(timeout=30)
    assert followed == "ready\nasked to end\n1\n", followed
    wait_until("it is gone", lambda: cluster.get("pod", "ends") is None)

    cluster.apply(pod("outlived", [("dev", "resourceClaimTemplateName", "one")], [("c", ["dev"], "echo ended")],
                      init=[("side", ["dev"], f"trap 'echo asked to end; {read}; exit 0' TERM; echo ready; "
                                              "while true; do sleep 0.1; done", "sidecar")], grace=20))
    wait_until("the main container has ended", lambda: cluster.phase("outlived") == "Succeeded", 60)
    assert cluster.logs("outlived", "side") == "ready\nasked to end\n1\n", cluster.logs("outlived", "side")
    cluster.run("delete", "pod", "outlived")
    wait_until("it is gone", lambda: cluster.get("pod", "outlived") is None)


def check_several_drivers(cluster):
    """One request with devices of two drivers: one file each."""
    cluster.run("delete", "pod", "many")
    wait_until("the devices are free", lambda: cluster.get("pod", "many") is None)
    cluster.apply(json.dumps({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "all"},
        "spec": {"devices": {"requests": [{"name": "accel", "exactly": {"deviceClassName": "any",
                                                                       "allocationMode": "All"}}]}}}))
    cluster.apply(pod("mixed", [("all", "resourceClaimName", "all")],
                      [("c", ["all/accel"], SEE + "drakkar-metadata all accel -o jsonpath='{.requests[*].devices[*].driver}'; sleep 600")]))
    wait_until("it runs", lambda: cluster.phase("mixed") == "Running", 60)

    def whole_log():
        text = cluster.logs("mixed", "c")
        return text if text and len(text.splitlines()[-1].split()) == 7 else None
    log = wait_until("it has read", whole_log)
    for driver in ("late.example.com", "sim.drakkar.io"):
        assert f"{KEP}/all/accel/{driver}-metadata.json" in log, log
        assert f"{KEP}/all/accel/{driver}-metadata.d/{driver}-metadata.json" in log, log
        assert [p for p in cluster.host_files() if f"/plugins/{driver}/" in p], "each in its own directory"
    drivers = log.splitlines()[-1].split()
    assert sorted(set(drivers)) == ["late.example.com", "sim.drakkar.io"] and len(drivers) == 7, drivers
    cluster.run("delete", "pod", "mixed")
    wait_until("it is gone", lambda: cluster.get("pod", "mixed") is None)


def check_empty_metadata(cluster):
    """A driver without metadata: a document with the request and its devices, without attributes."""
    cluster.late_devices.write_text("count: 1\n")
    cluster.late.send_signal(signal.SIGHUP)
    cluster.apply(pod("bare", [("nic", "resourceClaimName", "deferred")], [(
        "c", ["nic/nic"], "drakkar-metadata deferred nic -o json; sleep 600")]))
    wait_until("it runs", lambda: cluster.phase("bare") == "Running", 60)
    log = wait_until("it has read", lambda: cluster.logs("bare", "c").endswith("}\n") and cluster.logs("bare", "c"))
    document = json.loads(log)
    assert document["metadata"]["generation"] == 1, document
    assert document["requests"][0]["name"] == "nic", document
    (device,) = document["requests"][0]["devices"]
    assert set(device) == {"driver", "pool", "name"} and device["driver"] == "late.example.com", device
    cluster.run("delete", "pod", "bare")
    wait_until("it is gone", lambda: cluster.get("pod", "bare") is None)


def check_flag_toggled(cluster):
    """Off: new pods get no metadata, running ones keep theirs. On again: as before."""
    look = SEE + "echo looked; while sleep 0.2; do drakkar-metadata direct gpu -o jsonpath='{.metadata.generation}'; done"
    cluster.apply(pod("keeps", [("direct", "resourceClaimName", "direct")], [("c", ["direct/gpu"], look)]))
    wait_until("it reads", lambda: "\n1\n" in cluster.logs("keeps", "c"), 60)
    on = cluster.flags
    cluster.stop()
    cluster.late = None
    cluster.flags = tuple(f for f in on if f != "--enable-device-metadata")
    cluster.start()
    before = cluster.host_files()
    assert before, "what a running pod uses stays"
    lines = cluster.logs("keeps", "c").count("\n")
    wait_until("a pod that runs goes on reading", lambda: cluster.logs("keeps", "c").count("\n1\n") and
               cluster.logs("keeps", "c").count("\n") > lines + 3)
    cluster.apply(pod("plain", [("dev", "resourceClaimTemplateName", "one")], [("c", ["dev"], SEE + "echo done; sleep 600")]))
    wait_until("a new pod finds nothing", lambda: cluster.logs("plain", "c") == "done\n", 60)
    assert cluster.host_files() == before and len(cluster.specs()) == 2, (cluster.host_files(), cluster.specs())
    for name in ("plain", "keeps"):
        cluster.run("delete", "pod", name)
    wait_until("what was made before is cleaned up", lambda: not cluster.host_files() and not cluster.specs())
    cluster.stop()
    cluster.flags = on
    cluster.start()
    cluster.apply(pod("again", [("dev", "resourceClaimTemplateName", "one")],
                      [("c", ["dev"], "drakkar-metadata dev gpu --wait 20 -o jsonpath='{.metadata.generation}'; sleep 600")]))
    wait_until("on again, new pods have it", lambda: cluster.logs("again", "c") == "1\n", 60)
    cluster.run("delete", "pod", "again")
    wait_until("nothing is left on the host", lambda: not cluster.host_files() and not cluster.specs())


def main():
    skip_without_containers()
    drakkar, reader = sys.argv[1:3]
    with MetadataCluster(drakkar, reader, "--enable-device-metadata") as cluster:
        cluster.start()
        cluster.apply(CLASSES)
        check_containers_see_their_requests(cluster)
        check_updates_and_restarts(cluster)
        check_templates_and_subrequests(cluster)
        check_until_the_end(cluster)
        check_deferred(cluster)
        check_several_drivers(cluster)
        check_empty_metadata(cluster)
        wait_until("nothing is left on the host", lambda: not cluster.host_files() and not cluster.specs())
        check_flag_toggled(cluster)
    print("ok: metadata in init containers, sidecars and containers; isolation, templates, updates, restarts, "
          "deferral, several drivers and pods, empty metadata, clean-up; the flag on, off and on again")


if __name__ == "__main__":
    main()
