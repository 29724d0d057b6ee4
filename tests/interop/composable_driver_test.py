#!/usr/bin/env python3
"""The public driver for composable fabrics, unmodified and from its own manifests: it publishes what a fabric manager
(a small imitation here) has to offer as ResourceSlices of whole fabrics, and labels nodes."""
import base64
import http.server
import json
import pathlib
import re
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse

from node_drivers import DRIVERS, DriverCluster, enter, manifests, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "security"))
from identities import Identities, Identity  # noqa: E402

MACHINE = "00000000-0000-0000-0000-00000000000a"
GATEWAY_PORT = 443
DEVICES = """- index: 1
  cdi-model-name: "A100 40G"
  dra-attributes: {productName: "NVIDIA A100 40GB PCIe"}
  label-key-model: composable-a100-40G
  driver-name: gpu.example.org
  k8s-device-name: nvidia-a100-40g
  cannot-coexist-with: []
"""


class Manager(http.server.BaseHTTPRequestHandler):
    """Tokens, machines, and free devices of a model, as the fabric's manager answers."""
    free = 2

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        claims = base64.urlsafe_b64encode(json.dumps({"exp": int(time.time()) + 3600}).encode()).decode().rstrip("=")
        self.answer({"access_token": f"x.{claims}.x", "expires_in": 3600})

    def do_GET(self):
        path = urllib.parse.urlparse(self.path).path
        if path.endswith("/available-reserved-resources"):
            return self.answer({"fabric_id": 1, "reserved_res_num_per_fabric": Manager.free})
        return self.answer({"data": {"machines": [{"fabric_id": 1, "mach_uuid": MACHINE}]}})

    def log_message(self, *_):
        pass


def serve(work, address):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test.endpoint.com",
                    "-addext", "subjectAltName=DNS:test.endpoint.com", "-keyout", work / "key.pem", "-out", work / "cert.pem"],
                   check=True, capture_output=True)
    server = http.server.ThreadingHTTPServer((address, GATEWAY_PORT), Manager)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(work / "cert.pem", work / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return (work / "cert.pem").read_text()


def gateway(cluster):
    """The node's address in the pods' network."""
    cluster.apply("""apiVersion: v1
kind: Pod
metadata: {name: probe}
spec:
  containers: [{name: c, image: "localhost/busybox:latest", command: ["sleep", "1000000"]}]
""")
    wait_until("the probe is ready", lambda: cluster.is_running("probe"))
    return re.search(r"default via (\S+)", cluster.inside("probe", "ip", "route")).group(1)


def main():
    enter("composable-dra-driver")
    with DriverCluster(sys.argv[1]) as cluster:
        source = (manifests("composable-dra-driver") / "deployment.yaml").read_text()
        cluster.import_image("docker.io/library/cdi-dra", {"cdi_dra": DRIVERS / "composable-dra-driver"})
        cluster.start()
        address = gateway(cluster)
        certificate = serve(cluster.work, address)
        # The administrator configures the address of the manager and the polling interval.
        source = source.replace('ip: "127.0.0.1"', f'ip: "{address}"')
        source = source.replace("        - name: USE_CM\n", "        - name: SCAN_INTERVAL\n          value: \"5s\"\n        - name: USE_CM\n")
        cluster.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: composable-dra}\n")
        cluster.apply(json.dumps({"apiVersion": "v1", "kind": "Secret",
                                  "metadata": {"name": "composable-dra-secret", "namespace": "composable-dra"},
                                  "stringData": {"username": "u", "password": "p", "realm": "r", "client_id": "c",
                                                 "client_secret": "s", "certificate": certificate}}))
        cluster.apply(json.dumps({"apiVersion": "v1", "kind": "ConfigMap",
                                  "metadata": {"name": "composable-dra-dds", "namespace": "composable-dra"},
                                  "data": {"device-info": DEVICES, "label-prefix": "composable.example.org"}}))
        stem = Identities(cluster.data, cluster.work, cluster.ports[0]).certificate("admin", "admin", ["system:masters"])
        status, answer = Identity(cluster.data / "pki/ca.crt", stem).ask(
            cluster.ports[0], "PATCH", "/api/v1/nodes/n1", json.dumps({"spec": {"providerID": MACHINE}}),
            headers=[("Content-Type", "application/merge-patch+json")])
        assert status == 200, (status, answer)
        cluster.apply(source)
        pod = cluster.driver_pod("cdi-dra", "composable-dra")

        def devices():
            return sum(len(s["spec"]["devices"]) for s in cluster.slices("gpu.example.org"))
        wait_until("the fabric's devices are published", lambda: devices() == 2, 60)
        slice_ = cluster.slices("gpu.example.org")[0]["spec"]
        assert "nodeSelector" in slice_ and "nodeName" not in slice_, slice_
        node = json.loads(cluster.run("get", "node", "n1", "-o", "json"))
        assert any(label.startswith("composable.example.org/") for label in node["metadata"]["labels"]), node["metadata"]["labels"]
        print("ok: installed, published", flush=True)

        Manager.free = 3
        wait_until("a new device is published", lambda: devices() == 3, 60)
        cluster.kill()
        cluster.start()
        assert devices() == 3
        Manager.free = 1
        wait_until("devices that are gone are withdrawn", lambda: devices() == 1, 60)
        assert cluster.driver_pod("cdi-dra", "composable-dra")["metadata"]["uid"] == pod["metadata"]["uid"]
        print("ok: follows the fabric, also after a restart", flush=True)
        cluster.run("delete", "--ignore-not-found", "-f", "-", stdin=source)
        wait_until("the driver is gone", lambda: not cluster.pods("composable-dra"), 60)
        print("ok: removed", flush=True)


if __name__ == "__main__":
    main()
