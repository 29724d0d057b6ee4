#!/usr/bin/env python3
"""Clients that send much and mean little: bodies of callers that are not authenticated do not fill the server's
memory, and a user who floods it gets 429 while others are served."""
import json
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]
from cluster import ROOT, free_port, wait_until  # noqa: E402
import hyper_flood  # noqa: E402
from identities import Identities, Identity  # noqa: E402

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
BODY = 3 << 20


def connect(ca, port, protocols=("http/1.1",)):
    context = ssl.create_default_context(cafile=ca)
    context.check_hostname = False
    context.set_alpn_protocols(list(protocols))
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=20))


def resident_bytes(process):
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024


def send_body(ca, port, token, answers):
    """Announces and sends 3 MiB; stops when the server answers or no longer reads."""
    connection = connect(ca, port)
    connection.settimeout(3)
    credentials = f"Authorization: Bearer {token}\r\n" if token else ""
    connection.sendall(f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\n{credentials}"
                       f"Content-Type: application/json\r\nContent-Length: {BODY}\r\n\r\n".encode())
    try:
        for _ in range(BODY // 65536):
            connection.sendall(b" " * 65536)
    except OSError:
        pass
    try:
        answers.append(connection.recv(65536).decode(errors="replace").split("\r\n")[0])
    except OSError as error:
        answers.append(str(error))
    return connection


def bodies_of_strangers(ca, port, process):
    before = resident_bytes(process)
    for token in (None, "ey.not.one"):
        answers, threads, kept = [], [], []
        for _ in range(150):
            threads.append(threading.Thread(target=lambda: kept.append(send_body(ca, port, token, answers))))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        grown = resident_bytes(process) - before
        print(f"150 bodies of 3 MiB, token {token}: {sorted(set(answers))}, grown by {grown >> 20} MiB")
        assert grown < 100 << 20, grown
        refusals = {"HTTP/1.1 401 Unauthorized", "HTTP/1.1 403 Forbidden", "HTTP/1.1 429 Too Many Requests"}
        assert any(answer in refusals for answer in answers), answers[:5]
        assert not any(answer.startswith("HTTP/1.1 2") for answer in answers), answers[:5]
        for connection in kept:
            connection.close()


def slow_bodies_leave_room(admin, ca, port):
    """Bodies that never end occupy only a part of the memory for bodies."""
    held = []
    for _ in range(500):
        connection = connect(ca, port)
        connection.sendall(f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n".encode()
                           + b" " * 59_000)
        held.append(connection)
    large = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": {"k": "x" * 900_000}}
    status, text = admin.ask(port, "POST", CONFIG_MAPS, large)
    assert status == 201, text[:300]
    metrics = admin.ask(port, "GET", "/metrics")[1]
    used = float(re.search(r'drakkar_limit_usage{name="request_body_bytes"} (\S+)', metrics).group(1))
    print(f"{used / (1 << 20):.1f} MiB of bodies held by {len(held)} slow connections")
    assert 0 < used <= 17 << 20, used
    for connection in held:
        connection.close()


def flood_of_one_user(make, ca, port, admin):
    """One user keeps hundreds of expensive lists in flight; others are served."""
    user = Identity(ca, make.certificate("flooder", "flooder"))
    scheduler = Identity(ca, make.certificate("scheduler", "system:kube-scheduler"))
    admin.ask(port, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "flooder"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "flooder"}]})
    stop, lock, seen = threading.Event(), threading.Lock(), {}

    def pipeline():
        # Many requests on one connection without waiting for responses: HTTP/2, written by hand.
        for status in hyper_flood.lists(user.context, port, stop):
            with lock:
                seen[status] = seen.get(status, 0) + 1

    threads = [threading.Thread(target=pipeline) for _ in range(4)]
    for thread in threads:
        thread.start()
    waits = {"scheduler": 0.0, "admin": 0.0}
    deadline = time.monotonic() + 4
    number = 0
    while time.monotonic() < deadline:
        for name, identity, path in (("scheduler", scheduler, f"/api/v1/nodes?limit=1&timeout={number}s"),
                                     ("admin", admin, f"{CONFIG_MAPS}?limit=1&timeout={number}s")):
            begun = time.monotonic()
            status, text = identity.ask(port, "GET", path)
            waits[name] = max(waits[name], time.monotonic() - begun)
            assert status == 200, (name, status, text[:300])
            number += 1
    stop.set()
    for thread in threads:
        thread.join()
    print(f"flood: {seen}; longest waits: " + ", ".join(f"{n} {w * 1000:.0f} ms" for n, w in waits.items()))
    assert seen.get(429, 0) > 0, seen
    assert max(waits.values()) < 5, waits


def main():
    work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-floods-"))
    port = free_port()
    log = open(work / "log", "w")
    server = subprocess.Popen([sys.argv[1], "apiserver", f"--data-dir={work}/data", f"--port={port}",
                               "--max-requests-inflight=40"], cwd=ROOT, stdout=log, stderr=log)
    try:
        wait_until("the API server answers", lambda: (work / "data/admin.kubeconfig").exists(), 60)
        make = Identities(work / "data", work, port)
        ca = work / "data/pki/ca.crt"
        admin = Identity(ca, make.certificate("admin", "admin", ["system:masters"]))
        wait_until("it serves", lambda: admin.ask(port, "GET", "/readyz")[0] == 200, 60)
        bodies_of_strangers(ca, port, server.pid)
        slow_bodies_leave_room(admin, ca, port)
        flood_of_one_user(make, ca, port, admin)
        assert server.poll() is None
    except BaseException:
        print((work / "log").read_text()[-3000:])
        raise
    finally:
        server.terminate()
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
