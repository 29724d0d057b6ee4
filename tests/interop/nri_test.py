#!/usr/bin/env python3
"""NRI in both directions with containerd's own code: its plugin stub under our node, our plugin under its
runtime adaptation."""
import json
import os
import pathlib
import subprocess
import sys

from control_plane import CLAIM, NODE, ControlPlane, build_go, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from cluster import Cluster, skip_without_containers  # noqa: E402

POD = """apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: "localhost/busybox:latest", command: ["true"]}]
"""
LIMITED = """apiVersion: v1
kind: Pod
metadata: {name: limited, namespace: default}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  containers:
  - name: c
    image: localhost/busybox:latest
    command: ["sh", "-c", "grep Cpus_allowed_list /proc/self/status; ulimit -n; cat /proc/self/oom_score_adj; echo x > /dev/from-nri && echo written"]
"""
OTHER = """apiVersion: v1
kind: Pod
metadata: {name: other, namespace: default}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: "localhost/busybox:latest", command: ["sleep", "1000000"]}]
"""
CHANGED = """apiVersion: v1
kind: Pod
metadata: {name: changed, namespace: default}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  containers:
  - name: c
    image: localhost/busybox:latest
    command: ["sh", "-c", "echo nri=$FROM_NRI unwanted=$UNWANTED; ls -d /from-nri/bin; touch /from-nri/x 2>/dev/null || echo read-only"]
    env: [{name: UNWANTED, value: "here"}]
"""


def our_plugin(drakkar, examples):
    with ControlPlane(drakkar) as plane:
        binary, kubelet = plane.work / "gonri", plane.work / "gokubelet"
        build_go("gonri", binary)
        build_go("gokubelet", kubelet)
        assert plane.run("apply", "-f", "-", stdin=NODE), plane.error
        socket = plane.work / "nri.sock"
        plane.spawn([examples / "driver-network", f"--kubeconfig={plane.kubeconfig}", "--node-name=n1",
                     "--enable-device-metadata", f"--nri-socket={socket}", f"--cdi-dir={plane.work / 'cdi'}",
                     f"--registry-dir={plane.work / 'plugins_registry'}"],
                    env={k: v for k, v in os.environ.items() if k != "KUBECONFIG"})
        wait_until("devices are published", lambda: plane.run("get", "resourceslices", "-o", "name").strip())
        assert plane.run("apply", "-f", "-", stdin=CLAIM % {"driver": "net.example.com"}), plane.error
        claim = wait_until("the claim is reserved", lambda: (
            lambda c: c if c.get("status", {}).get("reservedFor") else None)(plane.get("resourceclaim", "claim")))
        subprocess.run([kubelet, f"-registrar={plane.work / 'plugins_registry/net.example.com-reg.sock'}", "-prepare-only",
                        f"-claim=default/claim/{claim['metadata']['uid']}"], check=True, timeout=60)
        metadata = plane.work / "plugins/net.example.com/dra-device-metadata/default_claim/dev/metadata.json"
        assert metadata.read_text() == "", "deferred"
        runtime = subprocess.Popen([binary, "runtime", socket, claim["status"]["reservedFor"][0]["uid"]],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, err = runtime.communicate(timeout=60)
        assert runtime.returncode == 0 and "done" in out, out + err
        wait_until("the driver says that it is registered",
                   lambda: 'registered with the container runtime" runtime="gonri 1.0"' in (plane.work / "log").read_text())
        told = json.loads(metadata.read_text())
        assert told["metadata"]["generation"] == 1, told
        assert told["requests"][0]["devices"][0]["networkData"]["ips"][0].startswith("192.0.2.1"), told


def their_plugin(drakkar):
    with Cluster(drakkar) as cluster:
        binary = cluster.work / "gonri"
        build_go("gonri", binary)
        cluster.start()
        log, mark = cluster.work / "gonri.log", cluster.work / "hook-ran"
        plugin = subprocess.Popen([binary, "plugin", cluster.data / "nri/nri.sock"], stdout=open(log, "w"),
                                  stderr=subprocess.STDOUT, env=dict(os.environ, GONRI_MARK=str(mark)))
        try:
            wait_until("the plugin is synchronized", lambda: "synchronized with 0 pods" in log.read_text())
            cluster.run("apply", "-f", "-", stdin=POD % "told")
            wait_until("the pod ends", lambda: (cluster.get("pod", "told") or {}).get("status", {}).get("phase") == "Succeeded")
            uid = cluster.get("pod", "told")["metadata"]["uid"]
            assert f"run default/told {uid}" in log.read_text(), log.read_text()
            wait_until("the end is told", lambda: "stop default/told" in log.read_text())
            # Containers keep the same ID from creation to removal.
            words = [line.split() for line in log.read_text().splitlines() if "told/c" in line]
            assert [w[0] for w in words][:3] == ["create", "start", "end"], words
            assert len({w[2] for w in words}) == 1 and len(words[0][2]) == 64, words
            # Changes by a plugin.
            cluster.run("apply", "-f", "-", stdin=CHANGED)
            wait_until("the pod ends", lambda: (cluster.get("pod", "changed") or {}).get("status", {}).get("phase") == "Succeeded")
            assert cluster.run("logs", "changed").splitlines()[0::2] == ["nri=yes unwanted=", "read-only"], cluster.run("logs", "changed")
            assert "/from-nri/bin" in cluster.run("logs", "changed")
            # Changes of the cgroup, limits, devices and hooks; another container moves too.
            cluster.run("apply", "-f", "-", stdin=OTHER)
            wait_until("the pod runs", lambda: (cluster.get("pod", "other") or {}).get("status", {}).get("phase") == "Running")
            cluster.run("apply", "-f", "-", stdin=LIMITED)
            wait_until("the pod ends", lambda: (cluster.get("pod", "limited") or {}).get("status", {}).get("phase") == "Succeeded")
            assert cluster.run("logs", "limited").split() == ["Cpus_allowed_list:", "0", "77", "500", "written"], cluster.run("logs", "limited")
            assert cluster.run("exec", "other", "--", "grep", "Cpus_allowed_list", "/proc/self/status").split()[1] == "0"
            wait_until("the hook has run", mark.exists)
            uid = cluster.get("pod", "limited")["metadata"]["uid"]
            assert f"{uid} in /drakkar/kubepods/besteffort/pod{uid}" in log.read_text(), log.read_text()
            # A change that no runtime here can make fails that pod only, and so does one that a validator rejects.
            cluster.run("apply", "-f", "-", stdin=POD % "prioritized")
            wait_until("the refusal is reported", lambda: "changes I/O priority of container c, which this node does not support"
                       in cluster.run("get", "events", "-o", "json"))
            cluster.run("apply", "-f", "-", stdin=POD % "rejected")
            wait_until("the rejection is reported", lambda: "gonri allows no memory limit of 10-gonri" in cluster.run("get", "events", "-o", "json"))
            cluster.run("apply", "-f", "-", stdin=POD % "unconcerned")
            wait_until("others run", lambda: (cluster.get("pod", "unconcerned") or {}).get("status", {}).get("phase") == "Succeeded")
            cluster.run("delete", "pod", "limited", "other", "prioritized", "rejected", "unconcerned")
            cluster.run("delete", "pod", "told")
            wait_until("the removal is told", lambda: "remove told/c" in log.read_text())
            # A container that a plugin rejects does not start.
            cluster.run("apply", "-f", "-", stdin=POD % "refused")
            wait_until("the rejection is reported", lambda: "gonri refuses this pod" in cluster.run("get", "events", "-o", "json"))
            assert cluster.get("pod", "refused")["status"]["phase"] == "Pending"
        finally:
            plugin.terminate()
            plugin.wait()


def main():
    drakkar, examples = sys.argv[1], pathlib.Path(sys.argv[2])
    our_plugin(drakkar, examples)
    skip_without_containers()
    their_plugin(drakkar)
    print("ok: NRI with containerd's plugin stub and with its runtime adaptation")


if __name__ == "__main__":
    main()
