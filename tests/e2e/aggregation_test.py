#!/usr/bin/env python3
"""APIServices and custom kinds: a server behind ours answers for its group, with discovery, a watch and the caller's name;
and `drakkar` works with kinds that its schema does not have."""
import base64
import json
import pathlib
import re
import ssl
import sys
import tempfile
import threading
import time
import http.client

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "interop"))
from control_plane import ControlPlane, wait_until  # noqa: E402
import extension_server  # noqa: E402

NAME = "v1beta1.metrics.k8s.io"
BOATS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat, shortNames: [bo]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns: [{name: Masts, type: integer, jsonPath: .spec.masts}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {masts: {type: integer}, crew: {type: array, items: {type: string}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
---
apiVersion: example.com/v1
kind: Boat
metadata: {name: argo}
spec: {masts: 1, crew: [jason, atalanta]}
"""


class Api:
    """The API as its administrator sees it."""

    def __init__(self, kubeconfig):
        text = kubeconfig.read_text()
        value = lambda key: re.search(rf"{key}: *\"?([^\s\"]+)", text).group(1)  # noqa: E731
        self.host, self.port = re.match(r"https://(.*):(\d+)", value("server")).groups()
        self.context = ssl.create_default_context(cadata=base64.b64decode(value("certificate-authority-data")).decode())
        with tempfile.NamedTemporaryFile("w") as pair:
            for key in ("client-certificate-data", "client-key-data"):
                pair.write(base64.b64decode(value(key)).decode() + "\n")
            pair.flush()
            self.context.load_cert_chain(pair.name)

    def open(self, path, headers=None):
        connection = http.client.HTTPSConnection(self.host, int(self.port), context=self.context, timeout=30)
        connection.request("GET", path, headers=headers or {})
        return connection.getresponse()

    def get(self, path, headers=None):
        response = self.open(path, headers)
        return response.status, json.loads(response.read())


def condition(plane):
    for each in plane.get("apiservices", NAME).get("status", {}).get("conditions", []):
        if each["type"] == "Available":
            return each
    return {}


def check_aggregation(plane, api):
    # The server's own group versions exist from the start.
    rows = plane.run("get", "apiservices")
    assert re.search(r"^v1\. +Local +True ", rows, re.M) and re.search(r"^v1\.apps +Local +True ", rows, re.M), rows

    certificate, key = extension_server.make_certificate(plane.work)
    bundle = base64.b64encode(certificate.read_bytes()).decode()
    authentication = json.loads(plane.run("get", "-n", "kube-system", "configmap", "extension-apiserver-authentication",
                                          "-o", "json"))["data"]
    assert authentication["client-ca-file"], authentication
    plane.run("apply", "-f", "-", stdin=json.dumps(extension_server.api_service(bundle)))
    wait_until("it says that the Service is missing", lambda: condition(plane).get("reason") == "ServiceNotFound")
    assert condition(plane)["message"] == 'service/metrics-server in "kube-system" is not present', condition(plane)
    status, answer = api.get(f"{extension_server.ROOT_PATH}/nodes")
    assert status == 503 and answer["reason"] == "ServiceUnavailable", answer

    server = extension_server.ExtensionServer(certificate, key, authentication)
    for each in (extension_server.SERVICE, extension_server.endpoint_slice(server.port)):
        plane.run("apply", "-f", "-", stdin=json.dumps(each))
    wait_until("the server behind is available", lambda: condition(plane).get("status") == "True")
    assert condition(plane)["reason"] == "Passed", condition(plane)
    rows = plane.run("get", "apiservices", NAME)
    assert re.search(r"^v1beta1\.metrics\.k8s\.io +kube-system/metrics-server +True ", rows, re.M), rows

    status, answer = api.get(f"{extension_server.ROOT_PATH}/nodes", {"X-Remote-User": "somebody", "X-Remote-Group": "x"})
    assert status == 200 and answer["items"][0]["usage"]["cpu"] == "250m", answer
    user, groups, path, authorization = server.seen[-1]
    assert user == "kubernetes-admin" or user == "admin", server.seen[-1]
    assert "system:masters" in groups and "x" not in groups and authorization is None, server.seen[-1]
    print(f"requests reach the server behind as {user}, by the front proxy's certificate")

    status, answer = api.get(f"{extension_server.ROOT_PATH}/nodes", {"Impersonate-User": "bob"})
    assert status == 403 and answer["message"] == (
        'nodes.metrics.k8s.io is forbidden: User "bob" cannot list resource "nodes" in API group "metrics.k8s.io" '
        'at the cluster scope'), answer
    print("our own authorization decides before it is asked")

    status, groups = api.get("/apis", {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"})
    ours = [item for item in groups["items"] if item["metadata"].get("name") == "metrics.k8s.io"][0]
    assert [r["resource"] for r in ours["versions"][0]["resources"]] == ["nodes", "pods"], ours
    assert ours["versions"][0]["freshness"] == "Current", ours
    status, groups = api.get("/apis")
    assert groups["groups"][0]["name"] == "apiregistration.k8s.io" and groups["groups"][-1]["name"] == "metrics.k8s.io", groups
    wait_until("its OpenAPI document is there", lambda: api.get(f"/openapi/v3{extension_server.ROOT_PATH}")[0] == 200)
    assert extension_server.ROOT_PATH[1:] in api.get("/openapi/v3")[1]["paths"]
    rows = plane.run("get", "nodes.metrics.k8s.io")
    assert re.search(r"^NAME +AGE\nn1 ", rows), rows
    print("discovery and OpenAPI have its group, and `drakkar get` finds its kinds")

    begun = time.monotonic()
    response = api.open(f"{extension_server.ROOT_PATH}/pods?watch=true")
    first = json.loads(response.readline())
    took = time.monotonic() - begun
    assert first["type"] == "ADDED" and took < 0.4, (first, took)
    assert json.loads(response.readline())["type"] == "MODIFIED" and response.read() == b"", "the watch ends with its server's"
    print("the events of a watch come one by one")

    hanging = [threading.Thread(target=api.get, args=(f"{extension_server.ROOT_PATH}/nodes/hangs",)) for _ in range(20)]
    for each in hanging:
        each.start()
    waits = []
    while any(each.is_alive() for each in hanging) and len(waits) < 200:
        before = time.monotonic()
        assert api.get("/api/v1/namespaces/default")[0] == 200
        waits.append(time.monotonic() - before)
    for each in hanging:
        each.join()
    assert len(waits) > 20 and sorted(waits)[len(waits) // 2] < 0.5, waits
    print(f"while 20 requests hung at it, others took {1000 * sorted(waits)[len(waits) // 2]:.0f} ms")

    server.stop()
    # Any change of its Service has it asked again.
    plane.run("apply", "-f", "-", stdin=json.dumps({**extension_server.SERVICE, "metadata": {
        **extension_server.SERVICE["metadata"], "annotations": {"changed": "yes"}}}))
    wait_until("it says that the server is gone", lambda: condition(plane).get("reason") == "FailedDiscoveryCheck")
    status, answer = api.get(f"{extension_server.ROOT_PATH}/nodes")
    assert status == 503, answer
    status, groups = api.get("/apis", {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"})
    ours = [item for item in groups["items"] if item["metadata"].get("name") == "metrics.k8s.io"][0]
    assert ours["versions"][0]["freshness"] == "Stale" and len(ours["versions"][0]["resources"]) == 2, ours
    plane.run("delete", "apiservice", NAME)
    status, answer = api.get(f"{extension_server.ROOT_PATH}/nodes")
    assert status == 404, answer
    print("a server that is away is known to be away, and its group goes with its APIService")


def check_custom_kinds(plane):
    made = plane.run("apply", "-f", "-", stdin=BOATS)
    assert "boat.example.com/argo created" in made, made + plane.error
    rows = plane.run("get", "bo")
    assert re.search(r"^NAME +MASTS\nargo +1", rows), rows + plane.error
    assert "boat.example.com/argo unchanged" in plane.run("apply", "-f", "-", stdin=BOATS), plane.error
    changed = BOATS.replace("masts: 1, crew: [jason, atalanta]", "crew: [jason]")
    assert "boat.example.com/argo configured" in plane.run("apply", "-f", "-", stdin=changed), plane.error
    assert plane.get("boats", "argo")["spec"] == {"crew": ["jason"]}, plane.get("boats", "argo")
    assert plane.get("boats.v1.example.com", "argo")["kind"] == "Boat"
    assert "argo" in plane.run("describe", "boat/argo"), plane.error
    plane.run("wait", "boat/argo", "--for=jsonpath={.spec.crew[0]}=jason", "--timeout=5s")
    assert plane.error == "", plane.error
    service = wait_until("its group version is registered", lambda: plane.get("apiservices", "v1.example.com"))
    assert service["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "true"}, service
    assert 'boat.example.com "argo" deleted' in plane.run("delete", "boat", "argo"), plane.error
    plane.run("delete", "-f", "-", stdin=BOATS)
    wait_until("its group version is gone", lambda: not plane.get("apiservices", "v1.example.com"))
    assert plane.run("get", "boats") == "" and "doesn't have a resource type" in plane.error, plane.error
    print("drakkar applies, shows, waits for and deletes objects of a definition")


def main():
    with ControlPlane(sys.argv[1]) as plane:
        api = Api(plane.kubeconfig)
        check_custom_kinds(plane)
        check_aggregation(plane, api)
    print("ok")


main()
