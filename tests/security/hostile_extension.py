"""A hostile server to which a webhook configuration or an APIService points: it answers without end, or far too late,
with redirects, upgrades, or JSON made to be expensive. What it does is the last part of the path."""
import base64
import http.server
import json
import pathlib
import ssl
import subprocess
import threading
import time

GROUP = "hostile.example.com"
ROOT_PATH = f"/apis/{GROUP}/v1"
SERVER_NAME = "hostile.default.svc"
RESOURCES = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/v1", "resources": [
    {"name": "things", "singularName": "thing", "namespaced": False, "kind": "Thing", "verbs": ["get", "list", "watch"]}]}
# Each operation doubles what the one before it made.
DOUBLING = [{"op": "add", "path": "/data/a", "value": "x" * 10_000}] + [
    {"op": "copy", "from": "/data", "path": f"/data/{i}"} for i in range(60)]


def make_certificate(folder):
    """A self-signed certificate, which is its own bundle."""
    stem = pathlib.Path(folder) / "hostile"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", f"/CN={SERVER_NAME}", "-addext", f"subjectAltName=DNS:{SERVER_NAME},IP:127.0.0.1",
                    "-keyout", f"{stem}.key", "-out", f"{stem}.crt"], check=True, capture_output=True)
    return stem


class HostileServer:
    """Listens immediately. `seen` has path and headers of every request; `discovery` is its behaviour when its
    resources are requested."""

    def __init__(self, folder):
        stem = make_certificate(folder)
        self.bundle = base64.b64encode(pathlib.Path(f"{stem}.crt").read_bytes()).decode()
        self.seen, self.discovery, self.sent = [], "resources", 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, body, status=200, headers=()):
                text = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def review(self, **response):
                review = json.loads(self.body)
                self.answer({"kind": review["kind"], "apiVersion": review["apiVersion"],
                             "response": {"uid": review["request"]["uid"], **response}})

            def patch(self, operations):
                text = operations if isinstance(operations, bytes) else json.dumps(operations).encode()
                self.review(allowed=True, patchType="JSONPatch", patch=base64.b64encode(text).decode())

            def converted(self, change):
                review = json.loads(self.body)
                objects = [dict(each, apiVersion=review["request"]["desiredAPIVersion"]) for each in review["request"]["objects"]]
                self.answer({"kind": review["kind"], "apiVersion": review["apiVersion"], "response": {
                    "uid": review["request"]["uid"], "result": {"status": "Success"},
                    "convertedObjects": change(objects)}})

            def endless(self, start=b"", piece=b" " * 65536):
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for part in [start] * bool(start) + [piece] * 16_000:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                    outer.sent += len(part)

            def handle_request(self):
                self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.seen.append((self.path, list(self.headers.items())))
                path = self.path.partition("?")[0]
                what = outer.discovery if path == ROOT_PATH else path.rpartition("/")[2]
                actions = {
                    "resources": lambda: self.answer(RESOURCES),
                    "allow": lambda: self.review(allowed=True),
                    "things": lambda: self.answer({"kind": "ThingList", "apiVersion": f"{GROUP}/v1", "items": []}),
                    "hang": lambda: time.sleep(20),
                    "endless": lambda: self.endless(),
                    "nested": lambda: self.answer(b'{"a":' + b"[" * 1_000_000),
                    "values": lambda: self.answer(b'{"kind":"AdmissionReview","a":[' + b"[]," * 1_900_000 + b"0]}"),
                    "redirect": lambda: self.answer({}, 302, [("Location", "https://127.0.0.1:1/api/v1/secrets")]),
                    "upgrade": lambda: self.answer(b"", 101, [("Connection", "Upgrade"), ("Upgrade", "spdy/3.1")]),
                    "headers": lambda: self.answer({}, 200, [(f"X-Header-{i}", "x" * 60_000) for i in range(100)]),
                    "split": lambda: self.answer({}, 200, [("X-One", "a\r\nX-Two: b"), ("Connection", "close, X-Three")]),
                    "doubling": lambda: self.patch(DOUBLING),
                    "operations": lambda: self.patch([{"op": "test", "path": "", "value": {}}] * 30_000),
                    "long": lambda: self.patch([{"op": "test", "path": "", "value": {}}] * 100_000),
                    "moves": lambda: self.patch([{"op": "replace", "path": "/metadata/namespace", "value": "kube-system"}]),
                    "not-a-patch": lambda: self.patch(b"{"),
                    "warnings": lambda: self.review(allowed=True, warnings=["w" * 5_000] * 1_000),
                    "denies": lambda: self.review(allowed=False, status={"message": "m" * 1_000_000, "code": 200}),
                    "explains": lambda: self.review(allowed=False, status={
                        "reason": "r" * 200_000, "details": {"name": "n" * 200_000, "causes": [
                            {"reason": "r", "message": "m" * 500, "field": "f"}] * 3_000}}),
                    "steals": lambda: self.converted(lambda objects: [
                        dict(each, metadata=dict(each["metadata"], namespace="kube-system", uid="u")) for each in objects]),
                    "forgets": lambda: self.converted(lambda objects: []),
                    "multiplies": lambda: self.converted(lambda objects: objects * 50),
                }
                actions.get(what, lambda: self.answer({"kind": "Status", "code": 404}, 404))()

            do_GET = do_POST = do_PUT = do_DELETE = handle_request

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, *_):
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{stem}.crt", f"{stem}.key")
        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, what):
        return f"https://127.0.0.1:{self.port}/{what}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
