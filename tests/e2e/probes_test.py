#!/usr/bin/env python3
"""Probes and hooks over the network with real sockets: the responses of a server on the node's network make pods ready or
not ready, and restart them. Containers find the API server, their token and their Services."""
import http.server
import json
import socket
import ssl
import subprocess
import sys
import threading
import urllib.request

from cluster import Cluster, skip_without_containers, wait_until

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: localhost/busybox:latest
    command: [sleep, "1000"]
    ports: [{{name: probed, containerPort: {port}, hostPort: {port}}}]
    {members}
"""

SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: data-base}
spec: {clusterIP: 10.96.7.7, ports: [{name: sql, port: 5432}]}
"""

REPORT = """
apiVersion: v1
kind: Pod
metadata: {name: report}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: localhost/busybox:latest
    command:
    - sh
    - -c
    - |
      env; echo @@@
      cd /var/run/secrets/kubernetes.io/serviceaccount
      cat namespace; echo; echo @@@
      cat token; echo; echo @@@
      cat ca.crt; echo @@@
      cat /etc/hosts; echo @@@
      exec sleep 1000
"""

NAMESPACE = """
apiVersion: v1
kind: Namespace
metadata: {name: fresh}
---
"""


class Web(http.server.ThreadingHTTPServer):
    """Responds with `status` and records requests."""

    def __init__(self, certificate=None):
        web = self
        self.status = 200
        self.requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                web.requests.append((self.path, dict(self.headers)))
                if self.path == "/moved":
                    self.send_response(302)
                    self.send_header("Location", "/final")
                else:
                    self.send_response(web.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]


class Tcp:
    """A port that can be opened and closed."""

    def __init__(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.listener = None

    def open(self):
        self.listener = socket.create_server(("127.0.0.1", self.port))

    def close(self):
        self.listener.close()


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def literal(name, value):
    return bytes([0, len(name)]) + name + bytes([len(value)]) + value


class GrpcHealth:
    """grpc.health.v1.Health/Check with the minimum of HTTP/2 that it needs."""
    SERVING, NOT_SERVING = 1, 2

    def __init__(self):
        self.status = self.SERVING
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(connection.makefile("rwb"),), daemon=True).start()

    def serve(self, stream):
        try:
            stream.read(24)  # the preface
            stream.write(frame(4, 0, 0))
            stream.flush()
            while head := stream.read(9):
                length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
                number = int.from_bytes(head[5:], "big")
                payload = stream.read(length)
                if kind == 4 and not flags & 1:
                    stream.write(frame(4, 1, 0))
                elif kind == 6 and not flags & 1:
                    stream.write(frame(6, 1, 0, payload))
                elif kind == 0 and flags & 1:
                    message = bytes([8, self.status])
                    stream.write(
                        frame(1, 4, number, b"\x88" + literal(b"content-type", b"application/grpc")) +
                        frame(0, 0, number, b"\0" + len(message).to_bytes(4, "big") + message) +
                        frame(1, 5, number, literal(b"grpc-status", b"0")))
                stream.flush()
        except OSError:
            pass  # the prober is done


def self_signed(directory):
    key, certificate = directory / "web.key", directory / "web.crt"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-subj", "/CN=nobody", "-days", "1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    both = directory / "web.pem"
    both.write_text(key.read_text() + certificate.read_text())
    return both


class Test:
    def __init__(self, cluster):
        self.cluster = cluster

    def create(self, name, port, members):
        self.cluster.run("apply", "-f", "-", stdin=POD.format(name=name, port=port, members=members))

    def container(self, name):
        statuses = (self.cluster.get("pod", name) or {}).get("status", {}).get("containerStatuses", [])
        return statuses[0] if statuses else {"ready": None, "started": None, "restartCount": 0}

    def wait_ready(self, name, ready):
        wait_until(f"{name} has ready={ready}", lambda: self.container(name)["ready"] is ready)

    def has_event(self, reason, text=""):
        return any(e["reason"] == reason and text in e.get("message", "") for e in self.cluster.list("events"))

    def check_probes(self, web):
        secure, tcp, grpc = Web(self_signed(self.cluster.work)), Tcp(), GrpcHealth()
        self.create("http", web.port, "readinessProbe: {periodSeconds: 1, failureThreshold: 1, "
                    "httpGet: {port: probed, path: /moved, httpHeaders: [{name: X-Probe, value: ours}]}}")
        self.create("https", secure.port, "readinessProbe: {periodSeconds: 1, failureThreshold: 1, "
                    f"httpGet: {{port: {secure.port}, scheme: HTTPS}}}}")
        self.create("grpc", grpc.port, "readinessProbe: {periodSeconds: 1, failureThreshold: 1, "
                    f"grpc: {{port: {grpc.port}}}}}")
        self.create("tcp", tcp.port, "startupProbe: {periodSeconds: 1, failureThreshold: 100, tcpSocket: {port: probed}}\n"
                    "    livenessProbe: {periodSeconds: 1, failureThreshold: 1, tcpSocket: {port: probed}}")
        for name in ("http", "https", "grpc"):
            self.wait_ready(name, True)
        _, headers = next(r for r in web.requests if r[0] == "/final")
        assert headers["User-Agent"].startswith("kube-probe/1.") and headers["X-Probe"] == "ours", headers
        web.status, secure.status, grpc.status = 500, 404, GrpcHealth.NOT_SERVING
        for name in ("http", "https", "grpc"):
            self.wait_ready(name, False)
        wait_until("the events say why",
                   lambda: self.has_event("Unhealthy", "HTTP probe failed with statuscode: 500")
                   and self.has_event("Unhealthy", 'service unhealthy (responded with "NOT_SERVING")'))

        wait_until("tcp runs", lambda: self.container("tcp")["started"] is False)
        tcp.open()
        wait_until("tcp has started", lambda: self.container("tcp")["started"])
        tcp.close()
        wait_until("tcp is restarted", lambda: self.container("tcp")["restartCount"] > 0)
        wait_until("the event says why", lambda: self.has_event("Killing", "failed liveness probe"))

    def check_hooks(self, web):
        self.create("hooked", web.port, "lifecycle: {postStart: {httpGet: {port: probed, path: /up}}, "
                    "preStop: {httpGet: {port: probed, path: /down}}}")
        self.wait_ready("hooked", True)
        agents = [headers["User-Agent"] for path, headers in web.requests if path == "/up"]
        assert len(agents) == 1 and agents[0].startswith("kube-lifecycle/1."), agents
        self.cluster.run("delete", "pod", "hooked")
        wait_until("the preStop hook was sent", lambda: any(path == "/down" for path, _ in web.requests))

    def check_surroundings(self):
        # A namespace and its pod in one file: the service account appears a moment after the namespace.
        self.cluster.run("apply", "-f", "-",
                         stdin=NAMESPACE + REPORT.replace("{name: report}", "{name: report, namespace: fresh}"))
        self.cluster.run("apply", "-f", "-", stdin=SERVICE)
        self.cluster.run("apply", "-f", "-", stdin=REPORT)
        wait_until("the pod has reported",
                   lambda: self.cluster.run("logs", "report", check=False).count("@@@\n") == 5)
        parts = [part.strip() for part in self.cluster.run("logs", "report").split("@@@\n")]
        environment, namespace, token, authority, hosts = parts[:5]
        variables = dict(line.split("=", 1) for line in environment.splitlines() if "=" in line)
        assert variables["DATA_BASE_SERVICE_HOST"] == "10.96.7.7", variables
        assert variables["DATA_BASE_SERVICE_PORT_SQL"] == "5432", variables
        assert variables["DATA_BASE_PORT_5432_TCP"] == "tcp://10.96.7.7:5432", variables
        assert namespace == "default", namespace
        assert hosts.startswith("# Kubernetes-managed hosts file."), hosts
        # Like client-go in a cluster: address, CA and token from the container.
        address = f"https://{variables['KUBERNETES_SERVICE_HOST']}:{variables['KUBERNETES_SERVICE_PORT']}"
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        request = urllib.request.Request(
            f"{address}/apis/authentication.k8s.io/v1/selfsubjectreviews", method="POST",
            data=json.dumps(review).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
        answer = json.load(urllib.request.urlopen(request, context=ssl.create_default_context(cadata=authority)))
        user = answer["status"]["userInfo"]
        assert user["username"] == "system:serviceaccount:default:default", answer
        pod = self.cluster.get("pod", "report")["metadata"]["uid"]
        assert user["extra"]["authentication.kubernetes.io/pod-uid"] == [pod], answer


def main():
    skip_without_containers()
    with Cluster(sys.argv[1], "--log-level=warning") as cluster:
        cluster.start()
        test = Test(cluster)
        test.check_probes(Web())
        test.check_hooks(Web())
        test.check_surroundings()
        assert not test.has_event("UnsupportedFields"), cluster.list("events")
        print("ok")


if __name__ == "__main__":
    main()
