#!/usr/bin/env python3
"""pods/proxy, services/proxy and nodes/proxy lead to pods and to the agents of nodes, and nowhere else: whatever a node
says about its pods, whatever a tenant writes into Endpoints, and whatever method a client uses."""
import base64
import os
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
from identities import Identities, Identity  # noqa: E402

PODS = "/api/v1/namespaces/team/pods"
SERVICES = "/api/v1/namespaces/team/services"
# Nobody's pod: this machine, link-local, the metadata services of clouds, groups, and no address at all.
FORBIDDEN = ("127.0.0.1", "127.1.2.3", "0.0.0.0", "0.0.0.1", "169.254.169.254", "169.254.1.1", "100.100.100.200",
             "168.63.129.16", "192.0.0.192", "224.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "ff02::1",
             "fd00:ec2::254", "fd00:0ec2::0:254", "fd20:ce::254", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
             "::ffff:a9fe:a9fe")
READERS, READERS_MIB_MAX = 200, 220
NODE_IP, NODE_IP6 = "10.99.0.1", "fd99::1"


class Trap:
    """Listens on the loopback address and remembers who came."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port, self.visits = self.server.getsockname()[1], []
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            connection.settimeout(2)
            try:
                self.visits.append(connection.recv(4096))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\ntrapped")
            except OSError:
                pass
            connection.close()


class EndlessAgent:
    """The agent of a node whose logs have no end."""

    def __init__(self, stem):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{stem}.crt", f"{stem}.key")
        self.context, self.server = context, socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port, self.served = self.server.getsockname()[1], 0
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            threading.Thread(target=self.serve, args=(self.server.accept()[0],), daemon=True).start()

    def serve(self, plain):
        piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        try:
            with self.context.wrap_socket(plain, server_side=True) as connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n")
                self.served += 1
                while True:
                    connection.sendall(piece)
        except OSError:
            pass


class Attack:
    def __init__(self, binary, work):
        self.port = free_port()
        self.log = open(work / "log", "w")
        self.server = subprocess.Popen([binary, "apiserver", f"--data-dir={work}/data", f"--port={self.port}"],
                                       cwd=ROOT, stdout=self.log, stderr=self.log)
        wait_until("the API server answers", lambda: (work / "data/admin.kubeconfig").exists(), 60)
        make = self.make = Identities(work / "data", work, self.port)
        ca = work / "data/pki/ca.crt"
        self.admin = Identity(ca, make.certificate("admin", "admin", ["system:masters"]))
        wait_until("it serves", lambda: self.admin.ask(self.port, "GET", "/readyz")[0] == 200, 60)
        self.node = Identity(ca, make.certificate("node", "system:node:hostile", ["system:nodes"]))
        self.tenant = Identity(ca, make.certificate("tenant", "tenant"))
        self.reader = Identity(ca, make.certificate("reader", "reader"))

    def create(self, path, body, who=None):
        status, text = (who or self.admin).ask(self.port, "POST", path, body)
        assert status == 201, (path, status, text[:500])

    def namespace(self, name):
        self.create("/api/v1/namespaces", {"metadata": {"name": name}})
        self.create(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})

    def refused(self, who, path, why, method="GET", **options):
        status, text = who.ask(self.port, method, path, **options)
        assert status >= 400 and why in text, (method, path, status, text[:500])

    def pod(self, name, ip=None, host=False):
        """A pod of the hostile node, which says that it has this address."""
        self.create(PODS, {"metadata": {"name": name}, "spec": {"nodeName": "hostile", "hostNetwork": host, "containers": [
            {"name": "c", "image": "i:1", "ports": [{"name": "web", "containerPort": 80}]}]}})
        if ip is not None:
            return self.node.ask(self.port, "PATCH", f"{PODS}/{name}/status",
                                 {"status": {"podIP": ip, "podIPs": [{"ip": ip}]}}, kind="application/merge-patch+json")


def lies_of_a_node(attack, trap):
    accepted = 0
    for number, ip in enumerate(FORBIDDEN):
        # What the API server does not even store cannot be reached either.
        stored = attack.pod(f"liar{number}", ip)[0] == 200
        accepted += stored
        for port in (trap.port, attack.port, 80):
            for scheme in ("", "https:"):
                attack.refused(attack.tenant, f"{PODS}/{scheme}liar{number}:{port}/proxy/latest/meta-data/",
                               "address not allowed" if stored else "does not have an address")
    assert accepted > 0
    for ip in ("127.1", "0x7f.1", "2130706433", "localhost", "metadata", "fe80::1%lo", "[::1]", "10.1.0.1:80", ""):
        name = f"name{abs(hash(ip))}"
        attack.pod(name, ip)
        attack.refused(attack.tenant, f"{PODS}/{name}:{trap.port}/proxy/x", "")
    for number, ip in enumerate((NODE_IP, NODE_IP6, f"::ffff:{NODE_IP}")):
        for host in (False, True):
            name = f"node{number}{'host' * host}"
            if attack.pod(name, ip, host)[0] == 200:
                attack.refused(attack.tenant, f"{PODS}/https:{name}:10250/proxy/pods", "address not allowed")
                attack.refused(attack.tenant, f"{PODS}/{name}:2379/proxy/v3/kv/range", "address not allowed", "POST")
    assert not trap.visits, trap.visits


def endpoints_of_a_tenant(attack, trap):
    """A Service whose endpoints are no pods, pods of others, or pods with another address."""
    attack.pod("own", "10.1.0.7")
    attack.namespace("other")
    attack.create("/api/v1/namespaces/other/pods", {"metadata": {"name": "victim"}, "spec": {
        "nodeName": "hostile", "containers": [{"name": "c", "image": "i:1"}]}})
    attack.node.ask(attack.port, "PATCH", "/api/v1/namespaces/other/pods/victim/status",
                    {"status": {"podIP": "10.1.0.9", "podIPs": [{"ip": "10.1.0.9"}]}}, kind="application/merge-patch+json")
    target = lambda name, namespace="team": {"kind": "Pod", "namespace": namespace, "name": name}
    lies = {
        "bare": {"ip": "10.1.0.8"}, "metadata": {"ip": "100.100.100.200"}, "renamed": {"ip": "10.1.0.8", "targetRef": target("own")},
        "absent": {"ip": "10.1.0.8", "targetRef": target("none")}, "others": {"ip": "10.1.0.9", "targetRef": target("victim", "other")},
        "homeless": {"ip": "10.1.0.9", "targetRef": target("victim", "")},
        "sideways": {"ip": "10.1.0.9", "targetRef": target("victim", "team/../other")},
        "node": {"ip": NODE_IP, "targetRef": target("node0")},
    }
    for name, address in lies.items():
        attack.create(SERVICES, {"metadata": {"name": name}, "spec": {"clusterIP": "None", "ports": [{"name": "web", "port": 80}]}})
        attack.create("/apis/discovery.k8s.io/v1/namespaces/team/endpointslices", {
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}}, "addressType": "IPv4",
            "ports": [{"name": "web", "port": 80}], "endpoints": [
                {"addresses": [address["ip"]], **({"targetRef": address["targetRef"]} if "targetRef" in address else {})}]})
        attack.refused(attack.tenant, f"{SERVICES}/{name}:80/proxy/x", "")
        attack.refused(attack.tenant, f"{SERVICES}/https:{name}:web/proxy/x", "")
    # A name that is resolved elsewhere.
    attack.create(SERVICES, {"metadata": {"name": "external"}, "spec": {"type": "ExternalName", "externalName": "localhost",
                                                                        "ports": [{"name": "web", "port": trap.port}]}})
    attack.refused(attack.tenant, f"{SERVICES}/external:web/proxy/x", "")
    attack.refused(attack.tenant, f"{SERVICES}/external:{trap.port}/proxy/x", "")
    assert not trap.visits, trap.visits


def upgrade(identity, port, method, path, protocol):
    raw = identity.context.wrap_socket(socket.create_connection(("127.0.0.1", port), 10))
    key = base64.b64encode(os.urandom(16)).decode()
    raw.sendall((f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n"
                 f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n"
                 "Content-Length: 0\r\n\r\n").encode())
    line = raw.recv(65536).decode(errors="replace")
    raw.close()
    return line.splitlines()[0]


def commands_with_the_right_to_read(attack):
    """Who may only read nodes/proxy runs no command, whatever the method of the request."""
    for resource in ("nodes/hostile", "nodes/hostile:10250", "nodes/https:hostile:10250"):
        for protocol in ("websocket", "SPDY/3.1", "h2c"):
            for method in ("GET", "HEAD"):
                line = upgrade(attack.reader, attack.port, method,
                               f"/api/v1/{resource}/proxy/exec/team/own/c?command=id&output=1", protocol)
                assert " 403" in line, (resource, protocol, method, line)
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        attack.refused(attack.reader, "/api/v1/nodes/hostile/proxy/run/team/own/c?cmd=id", "forbidden", method)


def agents_of_a_hostile_node(attack, trap):
    """A node says where its agent is. The server neither calls itself nor trusts another certificate."""
    for address, port in (("127.0.0.1", attack.port), ("0.0.0.0", attack.port), ("169.254.169.254", 80),
                          ("::ffff:127.0.0.1", attack.port), ("fe80::1", 10250), ("localhost", attack.port)):
        status, text = attack.node.ask(
            attack.port, "PATCH", "/api/v1/nodes/hostile/status",
            {"status": {"addresses": [{"type": "InternalIP", "address": address}],
                        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}}, kind="application/merge-patch+json")
        if status == 200:
            attack.refused(attack.admin, "/api/v1/nodes/hostile/proxy/api/v1/secrets", "")
    status, _ = attack.node.ask(
        attack.port, "PATCH", "/api/v1/nodes/hostile/status",
        {"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": trap.port}}}}, kind="application/merge-patch+json")
    assert status == 200
    attack.refused(attack.admin, "/api/v1/nodes/hostile/proxy/pods", "")
    assert all(b"HTTP" not in visit and b"Bearer" not in visit for visit in trap.visits), trap.visits


def readers_that_do_not_read(attack):
    """Logs without an end, for clients that read nothing: what waits for them is bounded."""
    agent = EndlessAgent(attack.make.certificate("agent", "system:node:endless", ["system:nodes"], server=True))
    attack.create("/api/v1/nodes", {"metadata": {"name": "endless"}, "status": {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": {"kubeletEndpoint": {"Port": agent.port}}}})
    attack.create(PODS, {"metadata": {"name": "chatty"}, "spec": {"nodeName": "endless", "containers": [{"name": "c", "image": "i:1"}]}})
    megabytes = lambda: int(re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{attack.server.pid}/status").read_text()).group(1)) >> 10
    before, opened = megabytes(), []
    for number in range(READERS):
        plain = socket.create_connection(("127.0.0.1", attack.port), 30)
        if number > 0:  # the first one reads in the end
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        opened.append(attack.admin.context.wrap_socket(plain))
        opened[-1].sendall(f"GET {PODS}/chatty/log?follow=true HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    wait_until("the logs are served", lambda: agent.served > READERS // 2, 60)
    time.sleep(5)
    grown = megabytes() - before
    print(f"{agent.served} logs that nobody reads: grown by {grown} MiB")
    assert grown < READERS_MIB_MAX, grown
    assert attack.admin.ask(attack.port, "GET", "/readyz")[0] == 200
    # They were not given up either: whoever reads later gets everything.
    received = 0
    while received < 16 << 20:
        piece = opened[0].recv(1 << 20)
        assert piece, f"the log ended after {received} bytes"
        received += len(piece)
    for each in opened:
        each.close()


def main():
    work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-proxies-"))
    attack, trap, ok = Attack(sys.argv[1], work), Trap(), False
    try:
        attack.namespace("team")
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        attack.create(f"{rbac}/clusterroles", {"metadata": {"name": "proxies"}, "rules": [
            {"apiGroups": [""], "resources": ["pods/proxy", "services/proxy"], "verbs": ["*"]}]})
        attack.create(f"{rbac}/clusterroles", {"metadata": {"name": "reads-nodes"}, "rules": [
            {"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"]}]})
        for user, role in (("tenant", "proxies"), ("reader", "reads-nodes")):
            attack.create(f"{rbac}/clusterrolebindings", {
                "metadata": {"name": user}, "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}})
        attack.create("/api/v1/nodes", {"metadata": {"name": "hostile"}}, attack.node)
        attack.create("/api/v1/nodes", {"metadata": {"name": "victim"}, "status": {"addresses": [
            {"type": "InternalIP", "address": NODE_IP}, {"type": "InternalIP", "address": NODE_IP6}]}})
        lies_of_a_node(attack, trap)
        endpoints_of_a_tenant(attack, trap)
        commands_with_the_right_to_read(attack)
        agents_of_a_hostile_node(attack, trap)
        readers_that_do_not_read(attack)
        ok = True
    finally:
        attack.server.terminate()
        attack.server.wait(timeout=20)
        if ok:
            shutil.rmtree(work)
        else:
            print(f"what the server wrote: {work}/log")
    print(f"{len(FORBIDDEN)} addresses that are no pod's were refused")


if __name__ == "__main__":
    main()
