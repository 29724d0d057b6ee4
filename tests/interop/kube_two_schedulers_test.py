#!/usr/bin/env python3
"""A stock kube-scheduler next to ours, both active, over the devices of one driver, at Drakkar's API server. When ours is
faster, the API server refuses the stock scheduler's allocation with 409. It handles that as an ordinary conflict: the pod
goes back to its queue and ends on another device.

A proxy in front of the API server holds the stock scheduler's allocation until ours has taken the device."""
import http.client
import http.server
import json
import pathlib
import re
import ssl
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "kube"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from peers import KubePeers, find_program, wait_until, write_kubeconfig  # noqa: E402
from cluster import free_port  # noqa: E402
from kube_scheduler_test import certificate_for  # noqa: E402

GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/default/resourceclaims"
DRIVER = "gpu.example.com"
DEVICES = 4
ROUNDS = DEVICES // 2


class Proxy(http.server.ThreadingHTTPServer):
    """Forwards everything, as the stock scheduler. Holds writes of claim statuses while `hold` says so."""

    daemon_threads = True

    def __init__(self, plane, identity):
        super().__init__(("127.0.0.1", 0), Forwarder)
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(plane.data / "pki/apiserver.crt", plane.data / "pki/apiserver.key")
        self.socket = serving.wrap_socket(self.socket, server_side=True)
        self.context = ssl.create_default_context(cafile=plane.data / "pki/ca.crt")
        self.context.load_cert_chain(f"{identity}.crt", f"{identity}.key")
        self.upstream = plane.port
        self.held = None               # the body of the write that waits
        self.arrived, self.released = threading.Event(), threading.Event()
        self.answers = []              # statuses of the writes that were held
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def arm(self):
        self.held = None
        self.arrived.clear(), self.released.clear()
        self.armed = True

    armed = False

    def pass_on(self, body):
        """Whether this write waits for the test."""
        if not self.armed:
            return False
        self.armed, self.held = False, json.loads(body)
        self.arrived.set()
        self.released.wait(30)
        return True


class Forwarder(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def forward(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
        allocates = self.command in ("PUT", "PATCH") and re.search(r"/resourceclaims/[^/]+/status", self.path)
        was_held = bool(allocates) and b'"allocation"' in (body or b"") and self.server.pass_on(body)
        upstream = http.client.HTTPSConnection("127.0.0.1", self.server.upstream, context=self.server.context, timeout=600)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection", "accept-encoding")}
        try:
            upstream.request(self.command, self.path, body, headers)
            answer = upstream.getresponse()
            if was_held:
                self.server.answers.append(answer.status)
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                    self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while chunk := answer.read1(65536):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        except (OSError, http.client.HTTPException):  # one side has ended
            self.close_connection = True
        finally:
            upstream.close()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward


def config(path, name, kubeconfig):
    path.write_text(json.dumps({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False}, "podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 2,
        "clientConnection": {"kubeconfig": str(kubeconfig), "contentType": "application/json",
                             "acceptContentTypes": "application/json"},
        "profiles": [{"schedulerName": name}]}))


def create(plane, name, scheduler, index=None):
    request = {"deviceClassName": "gpu"}
    if index is not None:
        request["selectors"] = [{"cel": {"expression": f'device.attributes["{DRIVER}"].index == {index}'}}]
    plane.apply(json.dumps({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": request}]}}}))
    plane.apply(json.dumps({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": scheduler, "automountServiceAccountToken": False,
                 "resourceClaims": [{"name": "r", "resourceClaimName": name}],
                 "containers": [{"name": "c", "image": "none", "resources": {"claims": [{"name": "r"}]}}]}}))


def device_of(plane, name):
    results = (plane.get("resourceclaim", name) or {}).get("status", {}).get("allocation", {}).get("devices", {}).get("results")
    return results[0]["device"] if results else None


def is_bound(plane, name):
    return (plane.get("pod", name) or {}).get("spec", {}).get("nodeName")


def main():
    drakkar, binary_dir = sys.argv[1:3]
    scheduler = find_program("kube-scheduler", binary_dir)
    with KubePeers(drakkar) as plane:
        plane.start("apiserver", "apiserver", f"--data-dir={plane.data}", f"--port={plane.port}")
        wait_until("the API server answers", lambda: plane.run("get", "namespaces", "-o", "name", check=False), 60)
        plane.start("controllers", "controllers", f"--kubeconfig={plane.kubeconfig}", "--secure-port=0",
                    "--controllers=*,-node-lifecycle-controller")
        size = {"cpu": "8", "memory": "8Gi", "pods": "110"}
        plane.apply(json.dumps({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
            "status": {"allocatable": size, "capacity": size, "conditions": [{"type": "Ready", "status": "True"}]}}))
        plane.apply(json.dumps({
            "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}}))
        plane.apply(json.dumps({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "n1"},
            "spec": {"driver": DRIVER, "nodeName": "n1", "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
                     "devices": [{"name": f"gpu-{i}", "attributes": {"index": {"int": i}}} for i in range(DEVICES)]}}))

        certificate_for(plane, "system:kube-scheduler")
        proxy = Proxy(plane, plane.work / "system-kube-scheduler")
        through = plane.work / "through-proxy.kubeconfig"
        write_kubeconfig(through, f"https://127.0.0.1:{proxy.server_port}", plane.data / "pki/ca.crt", "")
        config(plane.work / "stock.yaml", "stock", through)
        plane.start("kube-scheduler", scheduler, f"--config={plane.work}/stock.yaml", "--bind-address=127.0.0.1",
                    f"--secure-port={free_port()}", f"--cert-dir={plane.work}/kube-scheduler",
                    "--authorization-always-allow-paths=/healthz", "-v=2", ours=False)
        config(plane.work / "ours.yaml", "ours", plane.kubeconfig)
        plane.start("scheduler", "scheduler", f"--kubeconfig={plane.kubeconfig}", f"--config={plane.work}/ours.yaml",
                    "--secure-port=0")

        for n in range(ROUNDS):
            proxy.arm()
            create(plane, f"stock-{n}", "stock")
            assert proxy.arrived.wait(60), "the stock scheduler allocates nothing"
            wanted = proxy.held["status"]["allocation"]["devices"]["results"][0]["device"]
            # Ours does not know of that decision, and takes the same device.
            create(plane, f"ours-{n}", "ours", int(wanted.removeprefix("gpu-")))
            wait_until("our pod is bound", lambda n=n: is_bound(plane, f"ours-{n}"))
            assert device_of(plane, f"ours-{n}") == wanted
            proxy.released.set()
            wait_until("the pod of the stock scheduler is bound", lambda n=n: is_bound(plane, f"stock-{n}"), 60)
            other = device_of(plane, f"stock-{n}")
            assert other and other != wanted, (other, wanted)
        assert proxy.answers == [409] * ROUNDS, proxy.answers
        devices = [device_of(plane, f"{who}-{n}") for n in range(ROUNDS) for who in ("stock", "ours")]
        assert sorted(devices) == [f"gpu-{i}" for i in range(DEVICES)], devices
        proxy.shutdown()
    print(f"ok: {ROUNDS} allocations of the stock scheduler were refused, and its pods ended on other devices")


if __name__ == "__main__":
    main()
