#!/usr/bin/env python3
"""A driver in Go, built on kubeletplugin as vendors build theirs, under our node: prepare, unprepare, health,
rolling update, restarts of either side at every point, SIGKILL of either side in the middle of a call."""
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from parts import ROOT, Parts, skip_without_containers, wait_until  # noqa: E402

DRIVER = "go.example.com"
MANIFESTS = f"""apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: go}}
spec: {{selectors: [{{cel: {{expression: 'device.driver == "{DRIVER}"'}}}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: go}}
spec: {{spec: {{devices: {{requests: [{{name: dev, exactly: {{deviceClassName: go}}}}]}}}}}}
"""
# A node that starts removes the slices of drivers that are not registered, and drivers in Go take half a minute to
# publish them again; this one is newer and belongs to no node, so that there is always something to allocate.
SLICE = f"""apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: everywhere}}
spec:
  driver: {DRIVER}
  allNodes: true
  pool: {{name: n1, generation: 1000, resourceSliceCount: 1}}
  devices: [{{name: dev-0}}, {{name: dev-1}}, {{name: dev-2}}, {{name: dev-3}}]
"""
POD = """apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: "localhost/busybox:latest", command: ["sh", "-c", "echo devices=$GO_DEVICES; exec sleep 600"], resources: {claims: [{name: dev}]}}
  resourceClaims: [{name: dev, resourceClaimTemplateName: go}]
"""


def build(name="godriver"):
    """A name per test: they may run at the same time."""
    if not shutil.which("go"):
        print("skipped: needs Go")
        raise SystemExit(77)
    binary = ROOT / "build/interop" / name
    binary.parent.mkdir(parents=True, exist_ok=True)
    built = subprocess.run(["go", "build", "-o", str(binary), "."], cwd=ROOT / "tests/interop/godriver",
                           capture_output=True, text=True, check=False)
    if built.returncode != 0:
        if "dial tcp" in built.stderr or "lookup" in built.stderr:
            print("skipped: the Go modules are not there and cannot be fetched\n" + built.stderr)
            raise SystemExit(77)
        raise AssertionError(built.stderr)
    return str(binary)


class GoDriver:
    """One instance, with its output line by line."""

    def __init__(self, parts, binary, name, pod_uid="", *extra):
        self.parts, self.name = parts, name
        kubelet = parts.root
        flags = [f"--kubeconfig={parts.kubeconfig}", "--node-name=n1", f"--driver-name={DRIVER}",
                 f"--registry-dir={parts.registry}", f"--plugin-dir={kubelet}/plugins/{DRIVER}",
                 f"--cdi-dir={parts.cdi}", f"--pod-uid={pod_uid}", *extra]
        self.process = parts.start(name, binary, *flags, ours=False, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self.lines, self.waiting = [], queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.expect("ready", 30)

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())
            self.waiting.put(line.strip())

    def expect(self, start, seconds=20):
        """The next line with this prefix; earlier lines are skipped."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                line = self.waiting.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"{self.name} did not say {start!r} in {seconds} s but {self.lines}") from None
            if line.startswith(start):
                return line

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        self.expect("ok " + command)

    def count(self, start):
        return sum(1 for line in self.lines if line.split(" ")[0] == start)

    def calls(self):
        """The methods that were called, in order."""
        return [line.split()[1] for line in self.lines if line.startswith("rpc ")]

    def stop(self, how=signal.SIGTERM):
        self.parts.stop(self.name, how)


class Test:
    def __init__(self, parts, binary):
        self.parts, self.binary, self.a = parts, binary, "a"  # the pod of the step
        parts.start_control_plane()
        parts.start_node()
        wait_until("there is a place to register", lambda: pathlib.Path(parts.registry).is_dir())
        self.driver = self.new_driver()
        parts.apply(MANIFESTS)
        wait_until("devices are published", lambda: DRIVER in parts.run("get", "resourceslices", "-o", "json"))

    def new_driver(self, name="godriver", pod_uid="", *extra):
        return GoDriver(self.parts, self.binary, name, pod_uid, *extra)

    def health(self, pod):
        status = self.parts.get("pod", pod)["status"]["containerStatuses"][0]
        return [(r["health"], r.get("message", "")) for row in status.get("allocatedResourcesStatus", [])
                for r in row["resources"]]

    def start_pod(self, name, wait=True):
        self.parts.apply(POD % name)
        if wait:
            self.parts.wait_phase(name, "Running", 30)

    def end_pod(self, name):
        self.parts.delete_pod(name, 30)

    def restart_node(self, how):
        self.parts.stop("node", how)
        self.parts.start_node()

    def nothing_left(self):
        wait_until("no CDI file is left", lambda: not [p for p in self.parts.cdi.iterdir() if DRIVER in p.name])
        wait_until("no claim is left", lambda: not self.parts.run("get", "resourceclaims", "-o", "name").strip())
        wait_until("the checkpoint is empty",
                   lambda: "ClaimUID" not in (self.parts.root / "dra_manager_state").read_text())

    def prepare_and_unprepare(self):
        self.start_pod(self.a)
        wait_until("the device is in the container", lambda: "devices=dev-" in self.parts.run("logs", self.a))
        self.health_changes()
        self.end_pod(self.a)
        assert self.driver.count("unprepared") == 1, self.driver.lines
        self.nothing_left()

    def health_changes(self):
        wait_until("healthy", lambda: self.health(self.a) == [("Healthy", "")])
        held = [line.split()[3] for line in self.parts.run("get", "devices", "-o", "wide").splitlines() if f"default/{self.a}" in line]
        assert len(held) == 1, held
        self.driver.tell(f"health {held[0]} Unhealthy too hot")
        wait_until("unhealthy", lambda: self.health(self.a) == [("Unhealthy", "too hot")])
        wait_until("an event", lambda: self.parts.events("DeviceUnhealthy", self.a))
        self.driver.tell(f"health {held[0]} Healthy")
        wait_until("healthy again", lambda: self.health(self.a) == [("Healthy", "")])

    def failures_are_retried(self):
        self.driver.tell("fail prepare")
        self.start_pod(self.a, wait=False)
        wait_until("an event", lambda: self.parts.events("FailedPrepareDynamicResources", self.a))
        self.driver.tell("work")
        self.parts.wait_phase(self.a, "Running", 30)
        self.driver.tell("fail unprepare")
        self.parts.run("delete", "pod", self.a, "--wait=false")
        wait_until("an event", lambda: self.parts.events("FailedUnprepareDynamicResources", self.a))
        self.driver.tell("work")
        self.parts.run("wait", "--for=delete", f"pod/{self.a}", "--timeout=30s")
        self.nothing_left()

    def rolling_update(self):
        self.driver.stop()
        old = self.new_driver("old", "11111111-1111-1111-1111-111111111111")
        self.start_pod(self.a)
        old.expect("prepared")
        new = self.new_driver("new", "22222222-2222-2222-2222-222222222222")
        wait_until("both are watched", lambda: new.count("watch"))
        slices = self.parts.get("resourceslices")["items"]
        self.start_pod("b")
        new.expect("prepared")
        # A failed update: the new instance exits, the old one takes over again, then the update is retried.
        new.stop(signal.SIGKILL)
        self.start_pod("c")
        old.expect("prepared")
        new = self.new_driver("new", "22222222-2222-2222-2222-222222222222")
        wait_until("the new one is watched", lambda: new.count("watch"))
        assert {s["metadata"]["uid"] for s in slices} == \
            {s["metadata"]["uid"] for s in self.parts.get("resourceslices")["items"]}, "slices are kept"
        # A node that starts while both exist registers both, watches one of them and keeps their slices.
        watches = old.count("watch") + new.count("watch")
        self.restart_node(signal.SIGKILL)
        wait_until("one is watched again", lambda: old.count("watch") + new.count("watch") > watches)
        assert {s["metadata"]["uid"] for s in slices} == \
            {s["metadata"]["uid"] for s in self.parts.get("resourceslices")["items"]}, "slices survive the node's restart"
        old.stop()
        wait_until("health goes on", lambda: self.health(self.a) == [("Healthy", "")] == self.health("b"))
        self.end_pod(self.a)
        new.expect("unprepared")
        self.end_pod("b")
        self.end_pod("c")
        new.stop()
        self.driver = self.new_driver()
        self.nothing_left()

    def restarts(self, how):
        """Either side restarts before, while and after a pod runs."""
        self.driver.stop(how)
        self.start_pod(self.a, wait=False)
        wait_until("it is missed", lambda: self.parts.events("FailedPrepareDynamicResources", self.a) or
                   self.parts.events("FailedScheduling", self.a))
        self.driver = self.new_driver()
        self.parts.wait_phase(self.a, "Running", 40)
        container = self.parts.get("pod", self.a)["status"]["containerStatuses"][0]["containerID"]
        watches = self.driver.count("watch")
        self.restart_node(how)
        wait_until("the node watches again", lambda: self.driver.count("watch") > watches)
        wait_until("health after the node's restart", lambda: self.health(self.a) == [("Healthy", "")])
        self.driver.stop(how)
        wait_until("unknown without a driver", lambda: self.health(self.a) == [("Unknown", "")])
        self.driver = self.new_driver()
        wait_until("and known again", lambda: self.health(self.a) == [("Healthy", "")])
        assert self.parts.get("pod", self.a)["status"]["containerStatuses"][0]["containerID"] == container
        self.driver.stop(how)
        self.parts.run("delete", "pod", self.a, "--wait=false")
        wait_until("it is missed", lambda: self.parts.events("FailedUnprepareDynamicResources", self.a))
        self.restart_node(how)
        self.driver = self.new_driver()
        self.parts.run("wait", "--for=delete", f"pod/{self.a}", "--timeout=40s")
        assert self.driver.count("unprepared") == 1, self.driver.lines
        self.nothing_left()

    def ended_in_a_call(self, side, how):
        for call in ("prepare", "unprepare"):
            if call == "unprepare":
                self.start_pod(self.a)
            self.driver.tell(f"hold {call}")
            if call == "prepare":
                self.start_pod(self.a, wait=False)
            else:
                self.parts.run("delete", "pod", self.a, "--wait=false")
            self.driver.expect(call + " ")
            if side == "driver":
                self.driver.stop(how)
                self.driver = self.new_driver()
            else:
                watches = self.driver.count("watch")
                self.parts.stop("node", how)
                if how == signal.SIGTERM:
                    # The driver is still busy when the restarted agent repeats the call; the calls are serialized.
                    self.parts.start_node()
                    wait_until("the node watches again", lambda: self.driver.count("watch") > watches)
                    self.driver.tell("release")
                else:
                    self.driver.tell("release")
                    self.parts.start_node()
            if call == "prepare":
                self.parts.wait_phase(self.a, "Running", 40)
                self.end_pod(self.a)
            else:
                self.parts.run("wait", "--for=delete", f"pod/{self.a}", "--timeout=40s")
            self.nothing_left()


def run_steps(test, steps):
    for name, step in steps:
        begun = time.monotonic()
        test.a = "a-" + name.split()[-1].lower() + str(len(name))
        step()
        print(f"ok: {name} ({time.monotonic() - begun:.1f} s)", flush=True)


def main():
    skip_without_containers()
    binary = build()
    with Parts(sys.argv[1]) as parts:
        test = Test(parts, binary)
        steps = [("prepare, unprepare, health", test.prepare_and_unprepare),
                 ("failures are retried", test.failures_are_retried),
                 ("rolling update", test.rolling_update),
                 ("restarts", lambda: test.restarts(signal.SIGTERM)),
                 ("restart of the driver in a call", lambda: test.ended_in_a_call("driver", signal.SIGTERM)),
                 ("restart of the node in a call", lambda: test.ended_in_a_call("node", signal.SIGTERM)),
                 ("SIGKILL of the driver in a call", lambda: test.ended_in_a_call("driver", signal.SIGKILL)),
                 ("SIGKILL of the node in a call", lambda: test.ended_in_a_call("node", signal.SIGKILL)),
                 ("SIGKILL of either side between calls", lambda: test.restarts(signal.SIGKILL))]
        run_steps(test, steps)


if __name__ == "__main__":
    main()
