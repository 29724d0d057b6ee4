#!/usr/bin/env python3
"""Kills the node agent repeatedly while pods with devices are created and deleted: no container runs twice or is left
behind, and no claim stays prepared. 25 times, or DRAKKAR_NODE_KILLS."""
import collections
import json
import os
import random
import re
import signal
import sys
import time

from parts import Parts, skip_without_containers, wait_until

PODS = "/api/v1/namespaces/default/pods"
MOST_PODS = 5
SETTLED = 60  # seconds for everything to be taken down at the end


def pod(name, seconds, grace):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": grace,
                     "containers": [{"name": "c", "image": "localhost/busybox:latest",
                                     "command": ["sleep", str(seconds)], "resources": {"claims": [{"name": "dev"}]}}],
                     "resourceClaims": [{"name": "dev", "resourceClaimTemplateName": "one-device"}]}}


class Load:
    """Creates pods that run briefly or for long, and deletes them, according to the seed."""

    def __init__(self, parts, seed):
        self.parts, self.random, self.made = parts, random.Random(seed), 0
        self.alive = collections.deque()

    def step(self):
        if len(self.alive) >= MOST_PODS or (self.alive and self.random.random() < 0.25):
            self.alive.rotate(self.random.randrange(len(self.alive)))
            self.parts.api("DELETE", f"{PODS}/{self.alive.popleft()}")
            return
        name = f"load-{self.made}"
        self.made += 1
        answer = json.loads(self.parts.api("POST", PODS, pod(name, self.random.choice([0, 0.3, 600]),
                                                             self.random.choice([0, 1]))))
        assert answer["kind"] == "Pod", answer
        self.alive.append(name)


def containers(parts):
    """The number of monitors per pod and container."""
    counts = collections.Counter()
    for words in parts.conmons().values():
        log = next(w for w in words if w.startswith("k8s-file:"))
        counts[re.search(r"/([^/]+/[^/]+)/\d+\.log$", log).group(1)] += 1
    return counts


def check_doubles(parts):
    # A monitor forks once at start, so a single sample may see it twice.
    for _ in range(20):
        doubled = {name: n for name, n in containers(parts).items() if n > 1}
        if not doubled:
            return
        time.sleep(0.05)
    raise AssertionError(f"doubled: {doubled}")


def checkpoint(parts):
    return json.loads((parts.root / "dra_manager_state").read_text())["Data"]


def main():
    skip_without_containers()
    kills = int(os.environ.get("DRAKKAR_NODE_KILLS", "25"))
    seed = int(os.environ.get("DRAKKAR_SEED", time.time_ns() % 1_000_000))
    print(f"seed {seed}, {kills} kills", flush=True)
    begun = time.monotonic()
    with Parts(sys.argv[1]) as parts:
        parts.start_control_plane("--log-level=warning")
        parts.start_node("--log-level=warning")
        parts.start_driver("driver", "sim.drakkar.io", "--log-level=warning")
        for manifest in ("class.yaml", "claim-template.yaml"):
            parts.run("apply", "-f", f"examples/hello-device/{manifest}")
        wait_until("devices are published", lambda: parts.run("get", "resourceslices", "-o", "name").strip())
        load = Load(parts, seed)
        chance = random.Random(seed + 1)
        for kill in range(kills):
            until = time.monotonic() + chance.uniform(0.05, 1.6)
            while time.monotonic() < until:
                load.step()
                time.sleep(chance.uniform(0.02, 0.15))
            parts.stop("node", signal.SIGKILL)
            if chance.random() < 0.5:
                load.step()  # while nobody is there
            check_doubles(parts)
            parts.start_node("--log-level=warning")
            if kill % 100 == 99:
                print(f"{kill + 1} kills, {load.made} pods, {time.monotonic() - begun:.0f} s", flush=True)
        check_doubles(parts)
        while load.alive:
            parts.api("DELETE", f"{PODS}/{load.alive.popleft()}")

        def left():
            pods = json.loads(parts.api("GET", PODS))["items"]
            claims = json.loads(parts.api("GET", "/apis/resource.k8s.io/v1/resourceclaims"))["items"]
            return {"pods": [p["metadata"]["name"] for p in pods], "claims": [c["metadata"]["name"] for c in claims],
                    "containers": dict(containers(parts)), "prepared": "ClaimUID" in checkpoint(parts),
                    "cdi": [p.name for p in parts.cdi.iterdir()],
                    "mounts": [m for m in open("/proc/mounts").read().splitlines() if str(parts.work) in m]}
        deadline = time.monotonic() + SETTLED
        while any(left().values()):
            assert time.monotonic() < deadline, f"left behind: {left()}"
            time.sleep(0.2)
        events = json.loads(parts.api("GET", "/api/v1/namespaces/default/events"))["items"]
        started = len({e["involvedObject"]["uid"] for e in events if e["reason"] == "Started"})
        # Events right before a kill are lost, so this is a lower bound.
        assert started >= min(kills, 100) // 5, f"only {started} of {load.made} pods were started: no load at all"
        print(f"ok: {kills} kills, {load.made} pods of which {started} ran, nothing doubled or left behind, {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
