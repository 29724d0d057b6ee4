#!/usr/bin/env python3
"""Drivers that lie to their node: names that are paths, answers that are huge, endless, malformed or about others'
claims, floods of health, sockets that are swapped. The node keeps working, and an honest driver's pods start
meanwhile."""
import json
import os
import pathlib
import socket
import struct
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]
from hostile_grpc import DATA, HEADERS, PING, SETTINGS, Server, field, fields, frame, message  # noqa: E402
from parts import ROOT, Parts, skip_without_containers, wait_until  # noqa: E402

EVIL = "evil.example.com"
HEALTHY, UNHEALTHY = 1, 2
MEMORY_MAX = 400 << 20


def device(pool, name, requests=("r",), ids=()):
    return field(1, list(requests)) + field(2, pool) + field(3, name) + field(4, list(ids))


def prepared(uid, *devices, error=""):
    body = field(1, list(devices)) + (field(2, error) if error else b"")
    return field(1, field(1, uid) + field(2, body))


def health(name, state, pool="n1", words=""):
    return field(1, field(1, field(1, pool) + field(2, name)) + field(2, state) + field(5, words))


class Driver:
    """A registered driver. The attacks replace `prepare`, `unprepare` and `watch`."""

    def __init__(self, parts, name=EVIL, info=None, on_info=None):
        self.parts, self.name = parts, name
        self.endpoint = parts.root / "plugins" / "evil" / "dra.sock"
        self.socket = parts.registry / "evil-reg.sock"
        self.info = info or (field(1, "DRAPlugin") + field(2, name) + field(3, str(self.endpoint))
                             + field(4, ["v1.DRAPlugin", "v1.DRAResourceHealth"]))
        self.on_info, self.refusals, self.registered = on_info, [], False
        self.prepare = self.unprepare = self.honest
        self.watch = lambda call: time.sleep(3600)
        self.calls = 0
        self.plugin = Server(self.endpoint, self.serve)
        self.registration = Server(self.socket, self.register)

    def register(self, call):
        if call.method == "GetInfo":
            return self.on_info(call) if self.on_info else call.answer(self.info)
        found = dict(fields(call.request))
        if 2 in found:
            self.refusals.append(found[2].decode(errors="replace"))
        else:
            self.registered = True
        call.answer(b"")

    def serve(self, call):
        if call.method == "NodePrepareResources":
            self.calls += 1
            return self.prepare(call)
        if call.method == "NodeUnprepareResources":
            return self.unprepare(call)
        return self.watch(call)

    @staticmethod
    def uids(call):
        return [dict(fields(claim))[2].decode() for number, claim in fields(call.request) if number == 1]

    def honest(self, call):
        call.answer(b"".join(prepared(uid, *([device("n1", "d0")] if call.method.startswith("NodeP") else []))
                             for uid in self.uids(call)))

    def close(self):
        self.registration.close()
        self.plugin.close()


class Scene:
    def __init__(self, parts):
        self.parts, self.number = parts, 0
        self.node = parts.processes["node"]

    def pod(self, driver, image="localhost/busybox:latest"):
        """A pod with a claim of this driver; returns its name."""
        self.number += 1
        name = f"p{self.number}"
        self.parts.apply(f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: {name}}}
spec: {{spec: {{devices: {{requests: [{{name: r, exactly: {{deviceClassName: {driver}}}}}]}}}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  terminationGracePeriodSeconds: 0
  resourceClaims: [{{name: c, resourceClaimTemplateName: {name}}}]
  containers:
  - name: c
    image: {image}
    command: [sleep, "1000"]
    resources: {{claims: [{{name: c}}]}}
""")
        return name

    def check(self, what):
        """The node lives, is small, and starts a pod of the honest driver."""
        assert self.node.poll() is None, f"the node ended: {what}"
        begun = time.monotonic()
        name = self.pod("sim.drakkar.io")
        self.parts.wait_phase(name, "Running", 30)
        took = time.monotonic() - begun
        self.parts.delete_pod(name, 30)
        resident = 0
        for line in pathlib.Path(f"/proc/{self.node.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                resident = int(line.split()[1]) << 10
        assert resident < MEMORY_MAX, f"{what}: the node has used {resident >> 20} MiB"
        print(f"withstood: {what} (an honest pod took {took:.1f} s, node at most {resident >> 20} MiB)", flush=True)

    def message(self, pod):
        return " ".join(self.parts.events("FailedPrepareDynamicResources", pod))

    def refused(self, driver, what, seconds=40, **change):
        """A pod of the hostile driver does not start; the reason has these words and is short."""
        for name, value in change.items():
            setattr(driver, name, value)
        pod = self.pod(EVIL)
        wait_until(f"an event says: {what}", lambda: what in self.message(pod), seconds)
        for each in self.parts.events("FailedPrepareDynamicResources", pod):
            assert len(each) <= 5000, len(each)
        assert self.parts.phase(pod) == "Pending"
        driver.prepare = driver.unprepare = driver.honest
        self.parts.delete_pod(pod, 60)


def registration(scene):
    parts = scene.parts
    for name in ("../../../etc/passwd", "Evil", "a" * 64, "x" * 3_000_000, "line\nfeed", "a/b", ""):
        driver = Driver(parts, name)
        wait_until(f"refused: {name[:20]!r}", lambda: driver.refusals, 30)
        assert not driver.registered and all(len(each) < 2000 for each in driver.refusals), name[:20]
        driver.close()
    answers = {
        "no answer": lambda call: time.sleep(3600),
        "not protobuf": lambda call: call.answer(b"\xff" * 1000),
        "too large": lambda call: call.answer(field(2, "x" * 6_000_000)),
        "endless": lambda call: [call.data(message(b"x" * 5_000_000)[:16384]) for _ in range(2000)],
        "only an end": lambda call: call.end(13, "no"),
        "a frame that is too long": lambda call: call.raw(frame(DATA, 0, call.stream, b"x" * 100_000)),
        "headers without end": lambda call: [call.raw(frame(HEADERS, 0, call.stream, b"\x00\x03abc\x03def"))
                                             or call.raw(frame(9, 0, call.stream, b"\x00\x03abc\x03def" * 1000))
                                             for _ in range(100)],
        "garbage instead of HTTP/2": lambda call: call.raw(os.urandom(100_000)),
        "many versions": lambda call: call.answer(field(1, "DRAPlugin") + field(2, EVIL) + field(4, ["v9"] * 200_000)),
    }
    for what, answer in answers.items():
        driver = Driver(parts, on_info=answer)
        time.sleep(0.3)
        scene.node.poll()
        assert not driver.registered, what
        driver.close()
    scene.check("registrations with hostile names and answers")


def sockets(scene):
    """Sockets that appear, vanish, are swapped, are links, and are far too many."""
    parts = scene.parts
    made = []
    for number in range(6000):
        listener = socket.socket(socket.AF_UNIX)
        path = parts.registry / f"flood-{number}.sock"
        listener.bind(str(path))
        listener.close()  # nobody accepts
        made.append(path)
    (parts.registry / "link.sock").symlink_to(parts.registry / "flood-1.sock")
    os.mkfifo(parts.registry / "fifo.sock")
    deep = parts.registry
    for number in range(300):
        deep = deep / f"d{number % 10}"
    os.system(f"mkdir -p {deep}")
    scene.check("6000 dead sockets, a link, a FIFO and 300 nested directories")
    for path in made:
        path.unlink()
    os.system(f"rm -rf {parts.registry}/d0 {parts.registry}/link.sock {parts.registry}/fifo.sock")
    first = Driver(parts)
    wait_until("registered", lambda: first.registered, 30)
    servers = [first]
    for number in range(40):
        os.rename(first.socket, parts.registry / ".aside")
        os.rename(parts.registry / ".aside", first.socket)
        if number % 10 == 0:
            other = Driver(parts)
            servers.append(other)
    wait_until("the last one is registered", lambda: servers[-1].registered, 30)
    for each in servers:
        each.close()
    scene.check("a socket that is swapped 40 times")


def answers(scene):
    driver = Driver(scene.parts)
    wait_until("registered", lambda: driver.registered, 30)
    honest = next(claim["metadata"]["uid"] for claim in scene.parts.get("resourceclaims")["items"])
    everything = lambda **more: lambda call: call.answer(b"".join(prepared(uid, **more) for uid in driver.uids(call)))
    of = lambda *devices: lambda call: call.answer(b"".join(prepared(uid, *devices) for uid in driver.uids(call)))
    scene.refused(driver, "unknown claim UID", prepare=lambda call: call.answer(
        prepared(honest, device("n1", "gpu-0")) + b"".join(prepared(uid, device("n1", "d0")) for uid in driver.uids(call))))
    scene.refused(driver, "unknown claim UID", prepare=lambda call: call.answer(prepared("u" * 1_000_000)))
    scene.refused(driver, "skipped 1 ResourceClaims", prepare=lambda call: call.answer(b""))
    scene.refused(driver, "NodePrepareResources failed", prepare=everything(error="e" * 2_000_000))
    scene.refused(driver, "NodePrepareResources", prepare=everything(error="e" * 5_000_000))
    scene.refused(driver, "devices for one claim", prepare=of(*[device("n1", "d0")] * 20_000))
    scene.refused(driver, "devices for one claim", prepare=of(*[b""] * 1_000_000))
    scene.refused(driver, "malformed protobuf", prepare=lambda call: call.answer(b"\xff" * 100_000))
    scene.refused(driver, "NodePrepareResources", prepare=lambda call: call.end(8, "no room"))
    scene.refused(driver, "NodePrepareResources", prepare=lambda call: call.raw(os.urandom(65536)))
    # CDI ids decide what the container gets: only devices of a spec that somebody installed on the node.
    for id in ("../../etc/passwd", "evil.example.com/class=../../../etc", "a" * 100_000, "evil.example.com/c=\n"):
        pod = scene.pod(EVIL)
        driver.prepare = of(device("n1", "d0", ids=(id,)))
        wait_until("the pod waits with a reason", lambda: any(
            "CDI" in e or "resolv" in e for reason in ("Failed", "FailedPrepareDynamicResources", "FailedCreatePodSandBox",
                                                       "FailedSync", "FailedStart", "UnresolvableCDI")
            for e in scene.parts.events(reason, pod)) or waiting(scene.parts, pod), 40)
        assert scene.parts.phase(pod) == "Pending"
        driver.prepare = driver.honest
        scene.parts.delete_pod(pod, 60)
    # A call that hangs holds up its own claims only.
    driver.prepare = lambda call: time.sleep(3600)
    stuck = scene.pod(EVIL)
    wait_until("the call is under way", lambda: driver.calls, 30)
    scene.check("answers that are wrong, huge and malformed, and a call that hangs")
    driver.prepare = driver.honest
    driver.plugin.close()  # ends the call that hangs
    driver.plugin = Server(driver.endpoint, driver.serve)
    scene.parts.wait_phase(stuck, "Running", 60)
    scene.parts.delete_pod(stuck, 60)
    driver.close()


def waiting(parts, pod):
    statuses = (parts.get("pod", pod) or {}).get("status", {}).get("containerStatuses", [])
    return [s for s in statuses if s["state"].get("waiting", {}).get("reason") not in (None, "ContainerCreating")]


def health_floods(scene):
    driver = Driver(scene.parts)
    wait_until("registered", lambda: driver.registered, 30)
    pod = scene.pod(EVIL)
    scene.parts.wait_phase(pod, "Running", 30)
    stop = threading.Event()
    sent = 0

    def flood(call):
        nonlocal sent
        number = 0
        while not stop.is_set():
            number += 1
            call.send(health("d0", HEALTHY if number % 2 else UNHEALTHY, words="w" * 2000))
            if number % 50 == 0:
                call.send(b"\xff\xff")  # malformed
                call.send(health("x" * 200_000, UNHEALTHY))
                call.send(health(f"other-{number}", UNHEALTHY))
            sent += 1
            time.sleep(0.0005)
    driver.watch = flood
    driver.plugin.close()
    driver.plugin = Server(driver.endpoint, driver.serve)
    wait_until("it floods", lambda: sent > 500, 30)
    revision = lambda: int(scene.parts.get("pod", pod)["metadata"]["resourceVersion"])
    writes, begun = scene.parts.metric("drakkar_node_resource_updates_total"), time.monotonic()
    scene.check(f"a flood of health reports")
    while time.monotonic() - begun < 3:
        time.sleep(0.1)
    log = (scene.parts.work / "log").read_text()
    assert log.count("malformed health report") <= 5, log.count("malformed health report")
    assert log.count("too long names") <= 5
    events = [e for e in scene.parts.get("events")["items"] if e["reason"] == "DeviceUnhealthy"]
    assert len(events) < 100, len(events)
    stop.set()
    print(f"  {sent} reports; {len(events)} events; status at revision {revision()}")
    # Empty parts of two bytes, which take hundreds of bytes each when decoded.
    driver.watch = lambda call: [call.send(b"\x0a\x00" * 1_900_000) for _ in range(20)]
    driver.plugin.close()
    driver.plugin = Server(driver.endpoint, driver.serve)
    time.sleep(1)
    scene.check("health reports of a million empty devices")
    # HTTP/2 frames that cost the sender nothing.
    driver.watch = lambda call: [call.raw(frame(PING, 0, 0, b"12345678") * 1000 + frame(SETTINGS, 0, 0) * 100
                                          + frame(DATA, 0, call.stream) * 1000) for _ in range(50)]
    driver.plugin.close()
    driver.plugin = Server(driver.endpoint, driver.serve)
    time.sleep(1)
    scene.check("floods of PING, SETTINGS and empty DATA")
    driver.close()
    again = Driver(scene.parts)
    scene.parts.delete_pod(pod, 60)
    again.close()


def cdi_files(scene):
    """Files that a driver leaves where the node reads CDI specs."""
    directory = scene.parts.cdi
    os.mkfifo(directory / "fifo.json")
    (directory / "loop.yaml").symlink_to(directory / "loop.yaml")
    (directory / "zero.json").symlink_to("/dev/zero")
    with open(directory / "sparse.json", "w") as file:
        file.truncate(1 << 40)
    (directory / "deep.json").write_text("[" * 1_000_000)
    (directory / "bomb.yaml").write_text("a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(20)))
    (directory / "dir.json").mkdir()
    scene.check("CDI files that are FIFOs, links, endless, deep and bombs")
    for name in ("fifo.json", "loop.yaml", "zero.json", "sparse.json", "deep.json", "bomb.yaml"):
        (directory / name).unlink()
    (directory / "dir.json").rmdir()


def slices(parts):
    return len((parts.get("resourceslices") or {}).get("items", []))


def main():
    skip_without_containers()
    with Parts(sys.argv[1]) as parts:
        parts.start_control_plane("--log-level=warning")
        parts.start_node("--log-level=info")
        parts.start_driver("driver", "sim.drakkar.io", f"--devices={ROOT}/examples/devices.yaml")
        parts.apply("\n---\n".join(f"""
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: {name}}}
spec: {{selectors: [{{cel: {{expression: 'device.driver == "{name}"'}}}}]}}
""" for name in (EVIL, "sim.drakkar.io")))
        # Once the other driver has published, the node has removed the slices that it found at its start.
        wait_until("devices are published", lambda: slices(parts) == 1, 60)
        parts.apply(f"""
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: evil}}
spec:
  driver: {EVIL}
  nodeName: n1
  pool: {{name: n1, generation: 1, resourceSliceCount: 1}}
  devices: [{", ".join("{name: d%d}" % i for i in range(40))}]
""")
        wait_until("all devices are published", lambda: slices(parts) == 2, 60)
        scene = Scene(parts)
        scene.check("nothing yet")
        keep = scene.pod("sim.drakkar.io")
        parts.wait_phase(keep, "Running", 30)
        for attack in (registration, sockets, answers, health_floods, cdi_files):
            if sys.argv[2:] and attack.__name__ not in sys.argv[2:]:
                continue
            begun = time.monotonic()
            attack(scene)
            print(f"{attack.__name__}: {time.monotonic() - begun:.1f} s", flush=True)
        assert parts.phase(keep) == "Running"
        parts.delete_pod(keep, 30)
        print("ok")


if __name__ == "__main__":
    main()
