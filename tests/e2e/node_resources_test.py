#!/usr/bin/env python3
"""Cgroups by QoS class, CPUs of their own for Guaranteed pods, and the order in which pods end when the machine shuts
down: with real containers, through a restart of the agent. Needs two CPUs."""
import json
import os
import pathlib
import sys

from cluster import SKIP, skip_without_containers, wait_until
from fake_logind import FakeLogind
from parts import Parts

CONFIGURATION = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupRoot: {root}
cpuManagerPolicy: static
cpuManagerReconcilePeriod: 1s
reservedSystemCPUs: "0"
systemReserved: {{memory: 256Mi}}
podPidsLimit: 99
shutdownGracePeriod: 20s
shutdownGracePeriodCriticalPods: 10s
"""
POD = """apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  terminationGracePeriodSeconds: 2
  priorityClassName: {priority}
  containers:
  - name: c
    image: localhost/busybox:latest
    command: ["sleep", "1000000"]
    resources: {resources}
"""


def cgroup(controller, path, file):
    """The file of a cgroup, wherever its controller is mounted."""
    for base in ("/sys/fs/cgroup", f"/sys/fs/cgroup/{controller}"):
        for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
            left, right = line.split(" - ")
            if left.split()[4] == base and (right.startswith("cgroup2") and base == "/sys/fs/cgroup"
                                            or controller in right.split()[2].split(",")):
                return pathlib.Path(f"{base}{path}/{file}").read_text().strip()
    return None


class Node(Parts):
    def pod(self, name, resources, priority='""'):
        self.apply(POD.format(name=name, resources=json.dumps(resources), priority=priority))
        self.wait_phase(name, "Running", 60)
        return self.get("pod", name)["metadata"]["uid"]

    def cpus(self, name):
        return self.run("exec", name, "--", "sed", "-n", r"s/^Cpus_allowed_list:\s*//p", "/proc/self/status").strip()

    def ready(self):
        conditions = self.get("node", "n1")["status"]["conditions"]
        return next((c["status"], c["message"]) for c in conditions if c["type"] == "Ready")


def main():
    skip_without_containers()
    if os.cpu_count() != 2:
        print("skipped: needs two CPUs")
        raise SystemExit(SKIP)
    if not os.path.isdir("/sys/fs/cgroup/cpu"):
        print("skipped: the values below are those of cgroup v1")
        raise SystemExit(SKIP)
    root = f"/drakkar-e2e-{os.getpid()}"
    try:
        with Node(sys.argv[1]) as node:
            settings = node.work / "kubelet.yaml"
            settings.write_text(CONFIGURATION.format(root=root))
            logind = FakeLogind(node.work / "bus")
            logind.start()
            os.environ["DBUS_SYSTEM_BUS_ADDRESS"] = logind.address
            node.start_control_plane()
            node.start_node(f"--config={settings}")
            wait_until("the node is ready", lambda: node.get("node", "n1") and node.ready()[0] == "True", 60)
            assert logind.locked.wait(10)

            best_effort = node.pod("best-effort", {})
            burstable = node.pod("burstable", {"requests": {"cpu": "250m"}, "limits": {"memory": "64Mi"}})
            assert cgroup("cpu", f"{root}/kubepods", "cpu.shares") == "1024", "one of two CPUs is reserved"
            memory = int(node.get("node", "n1")["status"]["capacity"]["memory"].rstrip("Ki")) * 1024
            limit = int(cgroup("memory", f"{root}/kubepods", "memory.limit_in_bytes"))
            assert memory - (257 << 20) < limit <= memory - (255 << 20), (memory, limit)
            assert cgroup("cpu", f"{root}/kubepods/besteffort", "cpu.shares") == "2"
            assert cgroup("cpu", f"{root}/kubepods/burstable", "cpu.shares") == "256"
            assert cgroup("cpu", f"{root}/kubepods/burstable/pod{burstable}", "cpu.shares") == "256"
            assert cgroup("memory", f"{root}/kubepods/burstable/pod{burstable}", "memory.limit_in_bytes") == str(64 << 20)
            assert cgroup("pids", f"{root}/kubepods/besteffort/pod{best_effort}", "pids.max") == "99"
            print("ok: cgroups by class", flush=True)
            # Its request would leave no whole CPU.
            node.delete_pod("burstable", 30)
            node.pod("burstable", {"limits": {"memory": "64Mi"}})

            assert node.cpus("best-effort") == "0-1"
            whole = {"cpu": "1", "memory": "64Mi"}
            guaranteed = node.pod("guaranteed", {"requests": whole, "limits": whole}, "system-node-critical")
            assert node.cpus("guaranteed") == "1"
            assert cgroup("cpu", f"{root}/kubepods/pod{guaranteed}", "cpu.cfs_quota_us") == "-1", "a CPU of its own"
            wait_until("the others have moved", lambda: node.cpus("best-effort") == node.cpus("burstable") == "0", 10)
            state = json.loads((node.root / "cpu_manager_state").read_text())
            assert state["defaultCpuSet"] == "0" and state["entries"] == {guaranteed: {"c": "1"}}, state

            node.stop("node")
            node.start_node(f"--config={settings}")
            late = node.pod("late", {})
            assert late and node.cpus("late") == "0" and node.cpus("guaranteed") == "1"
            print("ok: CPUs of their own, through a restart", flush=True)

            node.delete_pod("late", 30)
            logind.locked.wait(10)
            logind.shutdown()
            wait_until("the node is not ready", lambda: node.ready() == ("False", "node is shutting down"), 10)
            wait_until("the lock is released", logind.is_released, 30)
            ended = {}
            for name in ("best-effort", "burstable", "guaranteed"):
                status = node.get("pod", name)["status"]
                assert (status["phase"], status["reason"], status["message"]) == (
                    "Failed", "Terminated", "Pod was terminated in response to imminent node shutdown."), (name, status)
                assert any(c["type"] == "DisruptionTarget" and c["reason"] == "TerminationByKubelet"
                           for c in status["conditions"]), status
                ended[name] = status["containerStatuses"][0]["state"]["terminated"]["finishedAt"]
            assert ended["guaranteed"] >= max(ended["best-effort"], ended["burstable"]), ended
            node.apply(POD.format(name="refused", resources="{}", priority='""').replace(
                "  containers:", "  nodeName: n1\n  containers:"))
            node.wait_phase("refused", "Failed")
            assert node.get("pod", "refused")["status"]["reason"] == "NodeShutdown"
            print("ok: pods ended in order before the machine would go down", flush=True)
            for name in ("best-effort", "burstable", "guaranteed", "refused"):
                node.delete_pod(name, 30)
            assert json.loads((node.root / "cpu_manager_state").read_text())["defaultCpuSet"] == "0-1"
    finally:
        for controller in ("cpu", "memory", "pids", "cpuset", "blkio", "devices", "freezer", "cpuacct", "systemd", "hugetlb"):
            for below in ("/kubepods/burstable", "/kubepods/besteffort", "/kubepods", ""):
                try:
                    os.rmdir(f"/sys/fs/cgroup/{controller}{root}{below}")
                except OSError:
                    pass


if __name__ == "__main__":
    main()
