#!/usr/bin/env python3
"""Many CustomResourceDefinitions, and webhooks that do not match: what they cost the API server.

usage: api_kinds.py DRAKKAR [DEFINITIONS] [CREATES]

Starts `drakkar apiserver` in a new directory, creates that many definitions one after the other over one connection, and
prints a line per measurement. CPU is that of the server's process.
"""
import base64
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time

DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def definition(number):
    group = f"g{number % 250}.example.com"
    properties = {f"field{i}": {"type": "string", "description": "A field of the object that says what it says."}
                  for i in range(20)}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"things{number}.{group}"},
            "spec": {"group": group, "scope": "Namespaced",
                     "names": {"plural": f"things{number}", "singular": f"thing{number}", "kind": f"Thing{number}"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                                   "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                                       "spec": {"type": "object", "properties": properties},
                                       "status": {"type": "object", "properties": properties}}}}}]}}


def webhook(number):
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": f"other-{number}"},
            "webhooks": [{"name": f"w{number}.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"},
                          "sideEffects": "None", "admissionReviewVersions": ["v1"],
                          "rules": [{"apiGroups": ["apps"], "apiVersions": ["*"], "operations": ["*"],
                                     "resources": ["deployments", "deployments/scale"]}]}]}


class Server:
    def __init__(self, drakkar):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-bench-"))
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.process = subprocess.Popen([drakkar, "apiserver", f"--data-dir={self.work}/data", f"--port={port}"],
                                        stdout=subprocess.DEVNULL, stderr=open(self.work / "log", "w"))
        kubeconfig = self.work / "data/admin.kubeconfig"
        while not kubeconfig.exists():
            time.sleep(0.05)
        text = kubeconfig.read_text()
        value = lambda key: re.search(rf"{key}: *\"?([^\s\"]+)", text).group(1)  # noqa: E731
        context = ssl.create_default_context(cadata=base64.b64decode(value("certificate-authority-data")).decode())
        with tempfile.NamedTemporaryFile("w") as pair:
            for key in ("client-certificate-data", "client-key-data"):
                pair.write(base64.b64decode(value(key)).decode() + "\n")
            pair.flush()
            context.load_cert_chain(pair.name)
        self.connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=60)
        while True:
            try:
                self.ask("GET", "/readyz", expect=None)
                break
            except OSError:
                self.connection.close()
                time.sleep(0.05)

    def ask(self, method, path, body=None, accept="application/json", expect=(200, 201)):
        self.connection.request(method, path, json.dumps(body) if body is not None else None,
                                {"Content-Type": "application/json", "Accept": accept})
        response = self.connection.getresponse()
        text = response.read()
        assert expect is None or response.status in expect, (path, response.status, text[:500])
        return text

    def cpu(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def megabytes(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) / 1024

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.work, ignore_errors=True)


def timed(call, times=10):
    """Milliseconds: the first time, and the median."""
    took = []
    for _ in range(times):
        begun = time.monotonic()
        call()
        took.append(1000 * (time.monotonic() - begun))
    return took[0], sorted(took)[times // 2]


def main():
    drakkar = os.path.realpath(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    creates = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
    server = Server(drakkar)
    try:
        before, cpu = server.megabytes(), server.cpu()
        begun = time.monotonic()
        took = []
        for number in range(count):
            one = time.monotonic()
            server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(number))
            took.append(time.monotonic() - one)
        total = time.monotonic() - begun
        tenth = max(1, count // 10)
        print(f"definitions: {count} in {total:.1f} s, the first {tenth} {1000 * sum(took[:tenth]) / tenth:.1f} ms each, "
              f"the last {tenth} {1000 * sum(took[-tenth:]) / tenth:.1f} ms each; CPU {server.cpu() - cpu:.1f} s")
        while len(json.loads(server.ask("GET", "/apis/apiregistration.k8s.io/v1/apiservices"))["items"]) < min(count, 250):
            time.sleep(0.1)
        time.sleep(1)
        print(f"memory: {before:.0f} MB before, {server.megabytes():.0f} MB after")
        for name, path, accept in (("discovery, aggregated", "/apis", DISCOVERY), ("discovery, groups", "/apis", "application/json"),
                                   ("openapi v3 index", "/openapi/v3", "application/json"),
                                   ("openapi v3 document", "/openapi/v3/apis/g1.example.com/v1", "application/json"),
                                   ("openapi v2", "/openapi/v2", "application/json")):
            first, median = timed(lambda p=path, a=accept: server.ask("GET", p, accept=a))
            size = len(server.ask("GET", path, accept=accept))
            print(f"{name}: first {first:.1f} ms, then {median:.1f} ms, {size / 1e6:.2f} MB")
        server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(count))
        first, _ = timed(lambda: server.ask("GET", "/apis", accept=DISCOVERY), 1)
        index, _ = timed(lambda: server.ask("GET", "/openapi/v3"), 1)
        print(f"after one more definition: discovery {first:.1f} ms, openapi v3 index {index:.1f} ms")
        maps = "/api/v1/namespaces/default/configmaps"
        for hooks in (0, 20, 0, 20):
            for number in range(20):
                url = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
                if hooks and number < hooks:
                    server.ask("POST", url, webhook(number), expect=(201, 409))
                elif not hooks:
                    server.ask("DELETE", f"{url}/other-{number}", expect=(200, 404))
            cpu = server.cpu()
            for number in range(creates):
                server.ask("POST", maps, {"metadata": {"generateName": "m-"}, "data": {"a": "b"}})
            print(f"{hooks} webhooks that do not match: {1e6 * (server.cpu() - cpu) / creates:.0f} us of CPU per create")
    finally:
        server.stop()


main()
