"""A small server for an APIService, as metrics-server is one: it trusts the front proxy that the ConfigMap
kube-system/extension-apiserver-authentication names, takes the user from its headers, and serves metrics.k8s.io."""
import http.server
import json
import pathlib
import ssl
import subprocess
import threading
import time

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
ROOT_PATH = f"/apis/{GROUP}/{VERSION}"
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "metrics-server", "namespace": "kube-system"},
           "spec": {"clusterIP": "None", "ports": [{"name": "https", "port": 443}]}}


def api_service(bundle):
    return {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": f"{VERSION}.{GROUP}"},
            "spec": {"group": GROUP, "version": VERSION, "groupPriorityMinimum": 100, "versionPriority": 100,
                     "caBundle": bundle, "service": {"namespace": "kube-system", "name": "metrics-server"}}}


def endpoint_slice(port):
    return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "metrics-server-1", "namespace": "kube-system",
                         "labels": {"kubernetes.io/service-name": "metrics-server"}},
            "addressType": "IPv4", "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
            "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}]}


def make_certificate(folder, name="metrics-server.kube-system.svc"):
    """A self-signed certificate for `name`, which is its own bundle."""
    folder = pathlib.Path(folder)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-keyout", folder / "extension.key",
                    "-out", folder / "extension.crt"], check=True, capture_output=True)
    return folder / "extension.crt", folder / "extension.key"


RESOURCES = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{VERSION}", "resources": [
    {"name": "nodes", "singularName": "", "namespaced": False, "kind": "NodeMetrics", "verbs": ["get", "list"]},
    {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list", "watch"]}]}
TIMES = {"timestamp": "2026-01-01T00:00:00Z", "window": "15s"}
NODE = {"kind": "NodeMetrics", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {"name": "n1"}, **TIMES,
        "usage": {"cpu": "250m", "memory": "1Gi"}}
POD = {"kind": "PodMetrics", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {"name": "web", "namespace": "default"}, **TIMES,
       "containers": [{"name": "c", "usage": {"cpu": "10m", "memory": "5Mi"}}]}
DOCUMENT = {"openapi": "3.0.0", "info": {"title": "metrics", "version": "1"},
            "paths": {f"{ROOT_PATH}/nodes": {"get": {
                "responses": {"200": {"description": "OK"}},
                "x-kubernetes-action": "list",
                "x-kubernetes-group-version-kind": {"group": GROUP, "version": VERSION, "kind": "NodeMetrics"}}}},
            "components": {"schemas": {"NodeMetrics": {
                "type": "object", "description": "NodeMetrics says what a node uses.",
                "properties": {"usage": {"type": "object", "description": "What is in use."}},
                "x-kubernetes-group-version-kind": [{"group": GROUP, "version": VERSION, "kind": "NodeMetrics"}]}}}}


class ExtensionServer:
    """Listens at once. `seen` has the user, groups and path of every request but those of the API server itself."""

    def __init__(self, certificate, key, authentication):
        self.seen = []
        self.allowed = json.loads(authentication["requestheader-allowed-names"])
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, body, status=200):
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def user(self):
                """As an aggregated server finds it: only the front proxy may say who asks."""
                peer = self.connection.getpeercert()
                names = [value for part in (peer or {}).get("subject", ()) for field, value in part if field == "commonName"]
                if not any(name in outer.allowed for name in names):
                    return "system:anonymous"
                return self.headers["X-Remote-User"]

            def do_GET(self):
                path, _, query = self.path.partition("?")
                user = self.user()
                if user != "system:kube-aggregator":
                    outer.seen.append((user, self.headers.get_all("X-Remote-Group") or [], self.path,
                                       self.headers["Authorization"]))
                if user == "system:anonymous":
                    return self.answer({"kind": "Status", "status": "Failure", "code": 401, "reason": "Unauthorized"}, 401)
                if path == ROOT_PATH:
                    return self.answer(RESOURCES)
                if path == "/openapi/v3":
                    return self.answer({"paths": {ROOT_PATH[1:]: {"serverRelativeURL": f"/openapi/v3{ROOT_PATH}?hash=1"}}})
                if path == f"/openapi/v3{ROOT_PATH}":
                    return self.answer(DOCUMENT)
                kinds = {f"{ROOT_PATH}/nodes": ("NodeMetricsList", NODE), f"{ROOT_PATH}/pods": ("PodMetricsList", POD),
                         f"{ROOT_PATH}/namespaces/default/pods": ("PodMetricsList", POD)}
                if path in kinds and "watch=true" in query:
                    return self.watch(kinds[path][1])
                if path in kinds:
                    kind, item = kinds[path]
                    return self.answer({"kind": kind, "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": [item]})
                if path == f"{ROOT_PATH}/nodes/n1":
                    return self.answer(NODE)
                if path == f"{ROOT_PATH}/nodes/hangs":
                    time.sleep(3)
                return self.answer({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
                                    "reason": "NotFound", "message": "no such metrics"}, 404)

            def watch(self, item):
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for change in ("ADDED", "MODIFIED"):
                    text = json.dumps({"type": change, "object": item}).encode() + b"\n"
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
                    self.wfile.flush()
                    time.sleep(0.5)
                self.wfile.write(b"0\r\n\r\n")

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(cadata=authentication["requestheader-client-ca-file"])
        context.verify_mode = ssl.CERT_OPTIONAL
        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
