#!/usr/bin/env python3
"""Paths that reach a container through its devices: mounts of NRI plugins and of device metadata. A pod plants links
where they will be mounted and tries to write where drivers write; nothing appears outside its container. And a
plugin that answers nonsense fails that container only."""
import os
import pathlib
import socket
import struct
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]
from hostile_grpc import field, fields  # noqa: E402
from parts import ROOT, Parts, skip_without_containers, wait_until  # noqa: E402
from pod_escape_test import IMAGE, container, finish, pod, refusal  # noqa: E402

METADATA = "/var/run/kubernetes.io/dra-device-attributes"
REQUEST, RESPONSE = 1, 2
CREATE_CONTAINER = 4
PLUGIN_SERVICE, RUNTIME_SERVICE = 1, 2


class NriPlugin:
    """`adjust(pod, container)` returns the bytes of a ContainerAdjustment."""

    def __init__(self, path):
        self.adjust = lambda pod, container: b""
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.ready = threading.Event()
        self.buffers = {PLUGIN_SERVICE: b"", RUNTIME_SERVICE: b""}
        threading.Thread(target=self.read, daemon=True).start()
        self.write(RUNTIME_SERVICE, 1, REQUEST, field(1, "nri.pkg.api.v1alpha1.Runtime") + field(2, "RegisterPlugin")
                   + field(3, field(1, "evil") + field(2, "00")))
        assert self.ready.wait(20), "the plugin was not synchronized"

    def write(self, connection, stream, kind, data):
        message = struct.pack(">IIBB", len(data), stream, kind, 0) + data
        for at in range(0, len(message), 4096):
            piece = message[at:at + 4096]
            self.socket.sendall(struct.pack(">II", connection, len(piece)) + piece)

    def read(self):
        file = self.socket.makefile("rb")
        while True:
            head = file.read(8)
            if len(head) < 8:
                return
            connection, size = struct.unpack(">II", head)
            self.buffers[connection] += file.read(size)
            while len(self.buffers[connection]) >= 10:
                size, stream, kind, _ = struct.unpack(">IIBB", self.buffers[connection][:10])
                if len(self.buffers[connection]) < 10 + size:
                    break
                data = self.buffers[connection][10:10 + size]
                self.buffers[connection] = self.buffers[connection][10 + size:]
                if kind == REQUEST:
                    self.serve(stream, dict(fields(data)))

    def serve(self, stream, request):
        method, answer = request[2].decode(), b""
        if method == "Configure":
            answer = field(2, 1 << (CREATE_CONTAINER - 1))
        if method == "Synchronize":
            self.ready.set()
        if method == "CreateContainer":
            both = dict(fields(request[3]))
            names = [dict(fields(both[1]))[2].decode(), dict(fields(both[2]))[3].decode()]
            answer = field(1, self.adjust(*names))
        self.write(PLUGIN_SERVICE, stream, RESPONSE, field(2, answer) if answer else b"")

    def close(self):
        self.socket.close()


def mount(destination, source, *options, kind="bind"):
    return field(3, field(1, destination) + field(2, kind) + field(3, str(source)) + field(4, list(options)))


def device(path):
    """The machine's null device at a path of the container."""
    return field(6, field(1, field(1, path) + field(2, "c") + field(3, 1) + field(4, 3)))


def snapshot(host):
    """What an escape would change: the machine's top directories, our own, and the mounts outside the node's."""
    found = {name: sorted(os.listdir(name)) for name in ("/", "/etc", "/tmp", str(host), str(host / "given")) if os.path.isdir(name)}
    found["/tmp"] = [name for name in found["/tmp"] if name in ("inner", "x", "link", "metadata")]
    return found


def nri_mounts_stay_inside(parts, host):
    plugin = NriPlugin(parts.node_data / "nri/nri.sock")
    plant = container("plant", f"ln -s / /v/root; ln -s {host} /v/host; ln -s ../../../../../../../../../.. /v/up; "
                               f"ln -s /proc/1/root /v/magic; ln -s /proc/self/fd /v/fd; mkdir /v/d; ln -s {host} /v/d/deep",
                      "{name: v, mountPath: /v}")
    look = "ls /v /v/*/ 2>/dev/null; cat /inner/given.txt /v/inner/given.txt 2>/dev/null; echo done"
    before = snapshot(host)
    for number, destination in enumerate(("/v/root/inner", "/v/host/inner", "/v/up/inner", "/v/magic/inner", "/v/fd/5/inner",
                                          "/v/d/deep/inner", "/../../../../../inner", "/v/../../../../inner", "/v/host",
                                          "/v/up", "/proc/self/fd/3", "/dev/../inner")):
        name = f"nri-{number}"
        plugin.adjust = lambda p, c: mount(destination, host / "given", "rbind", "ro") if c == "c" else b""
        parts.apply(pod(name, container("c", look, "{name: v, mountPath: /v}"), plant))
        wait_until(f"{destination}: it has ended or was refused", lambda: parts.phase(name) in ("Succeeded", "Failed")
                   or refusal(parts, name), 30)
        text = parts.run("logs", name, check=False)
        assert "secret" not in text.split(), (destination, text)
        parts.delete_pod(name, 30)
        assert snapshot(host) == before, (destination, snapshot(host), before)
    # The same for device nodes.
    for number, path in enumerate(("/v/root/inner", "/v/host/inner", "/v/up/inner", "/v/magic/inner", "/v/d/deep/inner",
                                   "/../../../../../inner", "/v/../../../../inner")):
        name = f"device-{number}"
        plugin.adjust = lambda p, c: device(path) if c == "c" else b""
        parts.apply(pod(name, container("c", "echo ran", "{name: v, mountPath: /v}"), plant))
        wait_until(f"{path}: it has ended or was refused", lambda: parts.phase(name) in ("Succeeded", "Failed")
                   or refusal(parts, name), 30)
        parts.delete_pod(name, 30)
        assert snapshot(host) == before, (path, snapshot(host), before)
    # Anything that is no absolute path, and answers that make no sense, fail the container with a reason.
    for number, (what, answer) in enumerate((
            ("a relative path", mount("inner", host / "given")), ("an empty path", mount("", host / "given")),
            ("a source that is not there", mount("/m", host / "none")),
            ("a type that runc refuses", mount("/m", "none", kind="nonsense")),
            ("not protobuf", b"\xff" * 100), ("a hook without a path", field(5, b"\x0a\x00")), ("a device without a path", field(6, b"\x0a\x00")),
            ("a cgroup of others", field(6, field(3, "/drakkar"))), ("a cgroup above", field(6, field(3, "/x/../../y"))),
            ("an unknown namespace", field(6, field(7, field(1, "nonsense")))),
            ("three megabytes", field(4, field(1, "A") + field(2, "x" * 3_000_000))),
            ("a variable with a line end", field(4, field(1, "A=B\nC") + field(2, "x"))))):
        name = f"odd-{number}"
        plugin.adjust = lambda p, c: answer
        parts.apply(pod(name, container("c", "echo ran; env"), volumes="[]"))
        wait_until(f"{what}: it has ended or was refused", lambda: parts.phase(name) in ("Succeeded", "Failed")
                   or refusal(parts, name), 40)
        if what != "a variable with a line end":
            assert "ran" not in parts.run("logs", name, check=False).split(), what
        plugin.adjust = lambda p, c: b""
        parts.delete_pod(name, 30)
        if plugin.socket.fileno() < 0 or parts.processes["node"].poll() is not None:
            raise AssertionError(what)
        plugin.close()
        plugin = NriPlugin(parts.node_data / "nri/nri.sock")
    plugin.close()
    assert snapshot(host) == before


def metadata_is_for_reading(parts, host):
    """The pod mounts its own volume above the metadata's paths, plants links there, and tries to change the files."""
    parts.start_driver("driver", "sim.drakkar.io", f"--devices={ROOT}/examples/devices.yaml", "--enable-device-metadata")
    parts.apply("""
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: sim}
spec: {selectors: [{cel: {expression: 'device.driver == "sim.drakkar.io"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: shared}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: sim}}]}}
""")
    wait_until("devices are published", lambda: (parts.get("resourceslices") or {}).get("items"), 60)
    claims = "  resourceClaims: [{name: c, resourceClaimName: shared}]"
    uses = "    resources: {claims: [{name: c}]}"
    write = (f"f=$(find {METADATA} -name \"*-metadata.json\" | head -1); test -s $f || exit 1; d=$(dirname $f); "
             "echo x > $f && echo WROTE; rm -f $f && echo WROTE; touch $d/x && echo WROTE; ln -s / $d/link && echo WROTE; "
             "mv $f $d/y && echo WROTE; mount -o remount,rw $d && echo WROTE; test -s $f && echo intact; echo done")
    parts.apply(pod("writes", container("c", write, more=uses), volumes="[]", more=claims))
    text = finish(parts, "writes")
    assert "intact" in text and "done" in text and "WROTE" not in text, text
    parts.delete_pod("writes", 30)
    before = snapshot(host)
    plant = container("plant", f"ln -s {host} /v/dra-device-attributes; mkdir /w; ln -s / /v/root",
                      "{name: v, mountPath: /v}")
    for number, path in enumerate(("/var/run/kubernetes.io", "/var/run/dra-device-attributes", "/var/run", "/var")):
        plant = container("plant", f"mkdir -p /v/run/kubernetes.io /v/kubernetes.io; "
                                   f"for d in /v /v/run /v/run/kubernetes.io /v/kubernetes.io; do ln -s {host} $d/dra-device-attributes; "
                                   f"ln -s {host} $d/resourceclaims; ln -s {host} $d/resourceclaimtemplates; done", "{name: v, mountPath: /v}")
        name = f"covers-{number}"
        parts.apply(pod(name, container("c", f"find {METADATA} /var/run/dra-device-attributes/ | head -50; echo done",
                                        f"{{name: v, mountPath: {path}}}", uses), plant, more=claims))
        wait_until(f"{path}: it has ended or was refused", lambda: parts.phase(name) in ("Succeeded", "Failed")
                   or refusal(parts, name), 30)
        assert "secret" not in parts.run("logs", name, check=False), path
        parts.delete_pod(name, 30)
        assert snapshot(host) == before, (path, snapshot(host), before)
    parts.run("delete", "resourceclaim", "shared", check=False)


def hosts_file_is_not_read(parts):
    """The container fills its /etc/hosts; the node writes it again for the next start without reading terabytes."""
    parts.apply(pod("hosts", container("c", "if [ -s /done/f ]; then wc -c < /etc/hosts; exit 0; fi; echo x > /done/f; "
                                            "truncate -s 8T /etc/hosts; exit 1", "{name: v, mountPath: /done}"))
                .replace("restartPolicy: Never", "restartPolicy: OnFailure"))
    text = finish(parts, "hosts", seconds=60)
    assert 0 < int(text.split()[-1]) < 10_000, text
    parts.delete_pod("hosts", 30)


def main():
    skip_without_containers()
    with Parts(sys.argv[1]) as parts:
        host = parts.work / "host"
        (host / "given").mkdir(parents=True)
        (host / "secret").write_text("the host's\n")
        (host / "given/given.txt").write_text("given\n")
        parts.start_control_plane("--log-level=warning")
        parts.start_node("--log-level=warning")
        wait_until("the node serves NRI", lambda: (parts.node_data / "nri/nri.sock").exists())
        for attack in (lambda: hosts_file_is_not_read(parts), lambda: nri_mounts_stay_inside(parts, host),
                       lambda: metadata_is_for_reading(parts, host)):
            begun = time.monotonic()
            attack()
            print(f"withstood in {time.monotonic() - begun:.1f} s", flush=True)
        assert parts.processes["node"].poll() is None
        print("ok")


if __name__ == "__main__":
    main()
