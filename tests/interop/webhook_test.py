#!/usr/bin/env python3
"""Webhooks that others wrote: dra-example-driver's own, and one in Go with Kubernetes' published types, which mutates
pods, validates ConfigMaps and converts a custom resource. The API server calls them over HTTPS."""
import base64
import http.client
import json
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import go_peer  # noqa: E402
from control_plane import ROOT, ControlPlane, free_port, wait_until  # noqa: E402

EXAMPLE_WEBHOOK = ROOT / "build/peers/charts/bin/dra-example-webhook"


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

    def ask(self, method, path, body=None, content="application/json"):
        """The status, the decoded answer and the warnings."""
        connection = http.client.HTTPSConnection(self.host, int(self.port), context=self.context, timeout=60)
        connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": content})
        response = connection.getresponse()
        text = response.read()
        warnings = response.headers.get_all("Warning") or []
        connection.close()
        return response.status, json.loads(text), warnings

    def create(self, path, body):
        status, answer, _ = self.ask("POST", path, body)
        assert status == 201, (path, answer)
        return answer


def hook(name, client, resources, operations=("CREATE", "UPDATE"), groups=("",), **more):
    return {"name": f"{name}.example.com", "clientConfig": client, "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "rules": [{"apiGroups": list(groups), "apiVersions": ["*"], "operations": list(operations),
                       "resources": list(resources)}], **more}


def configuration(kind, name, *hooks):
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": name}, "webhooks": list(hooks)}


CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def check_admission(api, port, bundle):
    # By its Service: the endpoint is found, and the certificate is that of the Service.
    api.create("/api/v1/namespaces/default/services",
               {"metadata": {"name": "hook"}, "spec": {"clusterIP": "None", "ports": [{"name": "https", "port": 443}]}})
    api.create("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
               {"metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
                "addressType": "IPv4", "ports": [{"name": "https", "port": port}],
                "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}]})
    service = {"service": {"namespace": "default", "name": "hook", "path": "/validate"}, "caBundle": bundle}
    url = lambda path: {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}  # noqa: E731
    api.create(CONFIGURATIONS.format("validating"),
               configuration("Validating", "validate", hook("validate", service, ["configmaps"])))
    api.create(CONFIGURATIONS.format("mutating"),
               configuration("Mutating", "mutate", hook("mutate", url("/mutate"), ["pods"], ["CREATE"])))

    maps = "/api/v1/namespaces/default/configmaps"
    api.create(maps, config_map("good", kept="1"))
    status, answer, _ = api.ask("POST", maps, config_map("bad", bad="1"))
    assert status == 403 and answer["message"] == (
        'admission webhook "validate.example.com" denied the request: the key bad is not allowed'), answer
    status, answer, _ = api.ask("PATCH", f"{maps}/good", {"data": {"kept": None}}, "application/merge-patch+json")
    assert status == 400 and answer["message"].endswith("UPDATE removes the key kept"), answer
    print("a validating webhook in Go, found by its Service, rejects creates and updates")

    status, pod, warnings = api.ask("POST", "/api/v1/namespaces/default/pods",
                                    {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "localhost/c:1"}]}})
    assert status == 201, pod
    assert [c["name"] for c in pod["spec"]["containers"]] == ["c", "sidecar"], pod["spec"]
    sidecar = pod["spec"]["containers"][1]
    assert sidecar["imagePullPolicy"] == "IfNotPresent" and sidecar["volumeMounts"], sidecar
    assert pod["metadata"]["annotations"]["created-by"], pod["metadata"]
    assert any("a sidecar was added" in warning for warning in warnings), warnings
    print("a mutating webhook in Go adds a sidecar, which gets defaults and a service account token")

    # A webhook that hangs holds up only the requests it matches.
    api.create(CONFIGURATIONS.format("validating"),
               configuration("Validating", "hang", hook("hang", url("/hang"), ["secrets"], timeoutSeconds=2)))
    slow = []
    begun = time.monotonic()
    secret = {"metadata": {"name": "s"}, "data": {}}
    threads = [threading.Thread(target=lambda: slow.append(api.ask("POST", "/api/v1/namespaces/default/secrets", secret)))
               for _ in range(20)]
    for thread in threads:
        thread.start()
    waits = []
    while time.monotonic() - begun < 1.5:
        before = time.monotonic()
        status, _, _ = api.ask("GET", f"{maps}/good")
        assert status == 200
        waits.append(time.monotonic() - before)
    for thread in threads:
        thread.join()
    assert all(status == 500 and "context deadline exceeded" in answer["message"] for status, answer, _ in slow), slow[0]
    assert sorted(waits)[len(waits) // 2] < 0.5, waits
    print(f"20 requests hung for 2 s; {len(waits)} others took {1000 * sorted(waits)[len(waits) // 2]:.1f} ms each")

    begun = time.monotonic()
    for i in range(100):
        api.create(maps, config_map(f"many-{i}"))
    per_create = (time.monotonic() - begun) / 100
    context = ssl.create_default_context(cadata=base64.b64decode(bundle).decode())
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context)
    connection.request("GET", "/connections")
    opened = int(connection.getresponse().read())
    assert opened < 60, f"{opened} connections for 124 calls"
    print(f"100 creates through the webhook took {1000 * per_create:.1f} ms each, over few connections ({opened})")


def check_conversion(api, port, bundle):
    def version(name, storage, properties):
        return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": {
                field: {"type": "string"} for field in properties}}}}}}
    api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "metadata": {"name": "things.example.com"}, "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [version("v1", True, ["hostPort"]), version("v2", False, ["host", "port"])],
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {
                "url": f"https://127.0.0.1:{port}/convert", "caBundle": bundle}}}}})
    path = "/apis/example.com/{}/namespaces/default/things"
    made = api.create(path.format("v2"), {"apiVersion": "example.com/v2", "kind": "Thing", "metadata": {"name": "a"},
                                          "spec": {"host": "h", "port": "1"}})
    assert made["spec"] == {"host": "h", "port": "1"}, made
    _, old, _ = api.ask("GET", path.format("v1") + "/a")
    assert old["spec"] == {"hostPort": "h:1"}, old
    events = []

    def watch():
        connection = http.client.HTTPSConnection(api.host, int(api.port), context=api.context, timeout=60)
        connection.request("GET", path.format("v2") + "?watch=true&timeoutSeconds=10")
        response = connection.getresponse()
        while len(events) < 3:
            events.append(json.loads(response.readline()))
    watcher = threading.Thread(target=watch)
    watcher.start()
    wait_until("the watch shows the object", lambda: events)
    status, answer, _ = api.ask("PATCH", path.format("v1") + "/a", {"spec": {"hostPort": "h:2"}}, "application/merge-patch+json")
    assert status == 200, answer
    assert api.ask("DELETE", path.format("v1") + "/a")[0] == 200
    watcher.join()
    assert [(e["type"], e["object"]["apiVersion"], e["object"]["spec"]["port"]) for e in events] == [
        ("ADDED", "example.com/v2", "1"), ("MODIFIED", "example.com/v2", "2"), ("DELETED", "example.com/v2", "2")], events
    print("a conversion webhook in Go serves reads, writes and watches of two versions")


def check_example_driver(api, plane):
    """dra-example-driver's own webhook checks the parameters in claims, whatever their version."""
    if not EXAMPLE_WEBHOOK.exists():
        print("not checked: the webhook of dra-example-driver is missing; run ./dev peers charts")
        return
    key, certificate = plane.work / "hook.key", plane.work / "hook.crt"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
                    "-subj", "/CN=webhook", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    port = free_port()
    plane.spawn([EXAMPLE_WEBHOOK, f"--port={port}", f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}"])
    client = {"url": f"https://127.0.0.1:{port}/validate-resource-claim-parameters",
              "caBundle": base64.b64encode(certificate.read_bytes()).decode()}
    api.create(CONFIGURATIONS.format("validating"), configuration("Validating", "dra-example-driver", hook(
        "dra", client, ["resourceclaims", "resourceclaimtemplates"], groups=("resource.k8s.io",))))

    def claim(version, name, strategy):
        parameters = {"apiVersion": "gpu.resource.example.com/v1alpha1", "kind": "GpuConfig",
                      "sharing": {"strategy": strategy, "timeSlicingConfig": {"interval": "Default"}}}
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
        if version == "v1beta1":
            request = {"name": "gpu", "deviceClassName": "gpu.example.com"}
        return {"apiVersion": f"resource.k8s.io/{version}", "kind": "ResourceClaim", "metadata": {"name": name},
                "spec": {"devices": {"requests": [request], "config": [
                    {"requests": ["gpu"], "opaque": {"driver": "gpu.example.com", "parameters": parameters}}]}}}
    path = "/apis/resource.k8s.io/{}/namespaces/default/resourceclaims"
    wait_until("the example driver's webhook answers",
               lambda: api.ask("POST", path.format("v1"), claim("v1", "good", "TimeSlicing"))[0] == 201)
    for version in ("v1", "v1beta2", "v1beta1"):
        status, answer, _ = api.ask("POST", path.format(version), claim(version, "bad", "Nonsense"))
        assert status == 400 and answer["message"].startswith(
            'admission webhook "dra.example.com" denied the request: '), answer
        assert "unknown GPU sharing strategy" in answer["message"] or "Nonsense" in answer["message"], answer
    print("dra-example-driver's webhook rejects claims with wrong parameters in three versions")


def main(drakkar, binary_directory):
    program = go_peer.build("gowebhook", binary_directory)
    with ControlPlane(drakkar) as plane:
        api = Api(plane.kubeconfig)
        ca, port_file = plane.work / "ca.pem", plane.work / "port"
        plane.spawn([program, f"--ca-file={ca}", f"--port-file={port_file}"])
        wait_until("the Go webhook serves", port_file.exists)
        port, bundle = int(port_file.read_text()), base64.b64encode(ca.read_bytes()).decode()
        wait_until("the default service account exists",
                   lambda: api.ask("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0] == 200)
        check_admission(api, port, bundle)
        check_conversion(api, port, bundle)
        check_example_driver(api, plane)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
