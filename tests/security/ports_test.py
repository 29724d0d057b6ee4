#!/usr/bin/env python3
"""Every port and socket that `drakkar up` and its driver open is one that docs/security.md lists. TCP ports listen on
loopback by default, speak TLS and give nobody more than probes; unix sockets belong to root alone."""
import http.client
import os
import pathlib
import re
import socket
import ssl
import stat
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]
from cluster import ROOT, Cluster, free_port, skip_without_containers, wait_until  # noqa: E402

OPEN = ("/healthz", "/livez", "/readyz")
# Paths of ours, of a kubelet and of a kube-apiserver; of which an unknown caller gets nothing.
CLOSED = ("/", "/metrics", "/metrics/cadvisor", "/metrics/probes", "/metrics/resource", "/pods", "/runningpods/", "/devices",
          "/configz", "/flagz", "/statusz", "/debug/pprof/", "/debug/flags/v", "/stats/summary", "/spec/", "/logs/", "/api/v1/pods",
          "/api/v1/secrets", "/containerLogs/default/p/c", "/exec/default/p/c?command=id&output=1",
          "/run/default/p/c?cmd=id", "/attach/default/p/c?output=1", "/portForward/default/p", "/checkpoint/default/p/c",
          "/healthz/../pods", "//pods", "/%2e%2e/pods", "/healthz/%2e%2e/metrics", "/HEALTHZ/../metrics")


def process_tree(root):
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = re.search(r"^PPid:\s+(\d+)", (entry / "status").read_text(), re.M)
            except OSError:
                continue
            children.setdefault(int(parent.group(1)), []).append(int(entry.name))
    found, queue = [], [root]
    while queue:
        pid = queue.pop()
        found.append(pid)
        queue += children.get(pid, [])
    return found


def inodes(pids):
    found = set()
    for pid in pids:
        for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            try:
                target = os.readlink(descriptor)
            except OSError:
                continue
            if target.startswith("socket:["):
                found.add(target[8:-1])
    return found


def tcp_listeners(owned):
    """(address, port) of listening sockets, and every UDP socket."""
    found = []
    for name in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6"):
        path = pathlib.Path(f"/proc/net/{name}")
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            words = line.split()
            if words[9] not in owned or (name.startswith("tcp") and words[3] != "0A"):
                continue
            address, port = words[1].split(":")
            host = ".".join(str(byte) for byte in bytes.fromhex(address)[::-1]) if len(address) == 8 else address
            found.append((name, host, int(port, 16)))
    return found


def unix_listeners(owned):
    for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]:
        words = line.split()
        if len(words) > 7 and words[6] in owned and int(words[3], 16) & 0x10000:
            yield words[7]


def ask(port, path, tls=True, headers=()):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    kind = http.client.HTTPSConnection if tls else http.client.HTTPConnection
    connection = kind("127.0.0.1", port, timeout=20, **({"context": context} if tls else {}))
    try:
        connection.request("GET", path, headers=dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    finally:
        connection.close()


def main():
    skip_without_containers()
    scheduler, controllers, dashboard = free_port(), free_port(), free_port()
    with Cluster(sys.argv[1], f"--scheduler-port={scheduler}", f"--controllers-port={controllers}",
                 f"--dashboard-port={dashboard}") as cluster:
        cluster.start()
        wait_until("the dashboard listens", lambda: socket.socket().connect_ex(("127.0.0.1", dashboard)) == 0)
        ours = {"API server": cluster.ports[0], "node": cluster.ports[1], "scheduler": scheduler, "controllers": controllers}
        owned = inodes(process_tree(cluster.process.pid))
        listening = tcp_listeners(owned)
        assert {port for _, _, port in listening} == {*ours.values(), dashboard}, listening
        assert all(name == "tcp" and host == "127.0.0.1" for name, host, _ in listening), listening
        page = (ROOT / "docs/security.md").read_text()
        for name in (*ours, "dashboard"):
            assert re.search(rf"^\| {name} \|", page, re.M), f"docs/security.md does not list the port of: {name}"

        for name, port in ours.items():
            for path in OPEN:
                status, text = ask(port, path)
                assert status == (401 if name == "node" else 200) and len(text) < 200, (name, path, status, text[:300])
            for path in CLOSED:
                for headers in ((), {"Authorization": "Bearer x"}, {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"},
                                {"Authorization": "Basic YWRtaW46YWRtaW4="}, {"Host": "localhost", "Origin": "http://localhost"}):
                    status, text = ask(port, path, headers=headers)
                    assert status in (401, 403, 404), (name, path, headers, status, text[:300])
                    assert status != 404 or (name != "node" and name != "API server") or "%" in path \
                        or ".." in path or path == "//pods", (name, path, status, text[:300])
                    assert len(text) < 1000, (name, path, text[:1000])
            try:
                status, text = ask(port, "/metrics", tls=False)
                assert status == 400 and len(text) < 200, (name, status, text)
            except (OSError, http.client.HTTPException):
                pass  # plain HTTP gets no answer
        # The dashboard gives its page to browsers on this machine and data only for its token.
        for headers in ({}, {"Host": "evil.example.com"}, {"Origin": "http://evil.example.com"}):
            for path in ("/api/overview", "/api/state", "/metrics", "/../../etc/passwd", "/api/"):
                status, text = ask(dashboard, path, tls=False, headers=headers)
                assert status in (401, 403, 404, 421), (path, headers, status, text[:200])
        sockets = [path for path in unix_listeners(owned) if not path.startswith("@")]
        assert len(sockets) >= 3, sockets
        for path in unix_listeners(owned):
            assert not path.startswith("@"), f"an abstract socket has no owner: {path}"
            # The kernel remembers the name it was bound to; it was renamed when it was ready.
            path = re.sub(r"/\.([^/]+)\.new$", r"/\1", path if os.path.isabs(path) else str(ROOT / path))
            mode = os.stat(path).st_mode
            assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600, (path, oct(mode))
        print(f"ok: {len(listening)} TCP ports, {len(sockets)} unix sockets")


if __name__ == "__main__":
    main()
