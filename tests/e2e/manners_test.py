#!/usr/bin/env python3
"""By default drakkar does not affect the rest of the machine: no thread runs in real time or with raised priority, and no
process holds /dev/cpu_dma_latency, even while pods with claims start and stop. --low-latency holds it."""
import os
import pathlib
import sys
import threading

from cluster import Cluster, skip_without_containers, wait_until
from parts import Parts

DEVICE = "/dev/cpu_dma_latency"
POD = """apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: localhost/busybox:latest
    command: ["true"]
    resources: {claims: [{name: dev}]}
  resourceClaims: [{name: dev, resourceClaimTemplateName: one-device}]
"""
MANIFESTS = ("-f", "examples/hello-device/class.yaml", "-f", "examples/hello-device/claim-template.yaml")
PODS = [f"p{i}" for i in range(8)]


def fields(task):
    """Fields of /proc/PID/task/TID/stat after the name, which may contain anything; the state is field 3."""
    return (task / "stat").read_text().rsplit(")", 1)[1].split()


def offences(pid):
    """Raised priorities by thread, and open latency devices."""
    found = []
    process = pathlib.Path(f"/proc/{pid}")
    for task in (process / "task").iterdir():
        try:
            stat = fields(task)
        except OSError:
            continue  # the thread has just ended
        nice, policy = int(stat[19 - 3]), int(stat[41 - 3])
        if policy not in (os.SCHED_OTHER, os.SCHED_BATCH, os.SCHED_IDLE) or nice < os.nice(0):
            found.append(f"{(task / 'comm').read_text().strip()}: policy {policy}, nice {nice}")
    for descriptor in (process / "fd").iterdir():
        try:
            target = os.readlink(descriptor)
        except OSError:
            continue
        if target == DEVICE:
            found.append(target)
    return found


class Watch:
    """Samples processes repeatedly, because a thread could be raised only briefly."""

    def __init__(self, pids):
        self.pids, self.found, self.rounds = pids, set(), 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.look)

    def look(self):
        while not self.over.wait(0.001):
            for pid in self.pids:
                self.found.update(offences(pid))
            self.rounds += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def run_pods(cluster):
    cluster.run("apply", *MANIFESTS)
    for pod in PODS:
        cluster.run("apply", "-f", "-", stdin=POD % pod)
    cluster.run("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s", *[f"pod/{pod}" for pod in PODS])
    cluster.run("delete", "pods", "--all", "--timeout=30s")


def up(drakkar):
    with Cluster(drakkar) as cluster:
        cluster.start()
        pids = [pid for pid, _ in cluster.processes("drakkar")]
        assert len(pids) == 2, "up and its driver"
        with Watch(pids) as watch:
            run_pods(cluster)
        assert not watch.found and watch.rounds > 10, watch.found


def parts(drakkar):
    with Parts(drakkar) as cluster:
        cluster.start_control_plane()
        cluster.start_node()
        wait_until("the node registers drivers", cluster.registry.is_dir)
        cluster.start_driver()
        wait_until("devices are published", lambda: cluster.run("get", "resourceslices", "-o", "name", check=False).strip())
        with Watch([process.pid for process in cluster.processes.values()]) as watch:
            run_pods(cluster)
        assert not watch.found and watch.rounds > 10, watch.found


def asked(drakkar):
    if not os.access(DEVICE, os.W_OK):
        print(f"not tried: this machine has no {DEVICE}")
        return
    with Cluster(drakkar, "--low-latency") as cluster:
        cluster.start()
        assert DEVICE in offences(cluster.process.pid)


def main():
    skip_without_containers()
    up(sys.argv[1])
    parts(sys.argv[1])
    asked(sys.argv[1])
    print("ok")


if __name__ == "__main__":
    main()
