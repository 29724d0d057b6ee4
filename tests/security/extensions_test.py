#!/usr/bin/env python3
"""Hostile webhooks, hostile servers behind APIServices, and hostile definitions of kinds: requests get a clear answer, the
server's memory stays bounded, other clients are served, and nobody gets another's identity."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]
from cluster import ROOT, SKIP, free_port, wait_until  # noqa: E402
from hostile_bodies_test import SECONDS_MAX, Probe  # noqa: E402
from hostile_extension import GROUP, ROOT_PATH, HostileServer  # noqa: E402
import hyper_flood  # noqa: E402
from identities import Identities, Identity  # noqa: E402

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
HOOKS = "/apis/admissionregistration.k8s.io/v1/"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BOATS = "/apis/example.com/v1/boats"
MANY = 40


class Attack:
    def __init__(self, binary):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-extensions-"))
        self.port = free_port()
        self.log = open(self.work / "log", "w")
        self.server = subprocess.Popen([binary, "apiserver", f"--data-dir={self.work}/data", f"--port={self.port}"],
                                       cwd=ROOT, stdout=self.log, stderr=self.log)
        wait_until("the API server answers", lambda: (self.work / "data/admin.kubeconfig").exists(), 60)
        self.make = Identities(self.work / "data", self.work, self.port)
        self.ca = self.work / "data/pki/ca.crt"
        self.admin = Identity(self.ca, self.make.certificate("admin", "admin", ["system:masters"]))
        wait_until("it serves", lambda: self.ask("GET", "/readyz")[0] == 200, 60)
        self.probe = Probe(Identity(self.ca, self.make.certificate("other", "system:node:n1", ["system:masters"])), self.port)
        self.probe.start()
        self.hostile = HostileServer(self.work)

    def ask(self, method, path, body=None, **options):
        return self.admin.ask(self.port, method, path, body, **options)

    def create(self, path, body):
        status, text = self.ask("POST", path, body)
        assert status == 201, (path, status, text[:500])

    def resident(self):
        """MiB."""
        return int(re.search(r"VmRSS:\s+(\d+) kB", pathlib.Path(f"/proc/{self.server.pid}/status").read_text()).group(1)) >> 10

    def check(self, what, seconds=SECONDS_MAX):
        """No other client waited for long, and the server still answers."""
        waited = self.probe.take()
        print(f"{waited * 1000:8.1f} ms waited, {self.resident():4} MiB: {what}")
        assert self.server.poll() is None, f"the server ended after: {what}"
        assert waited <= seconds, f"another client waited {waited:.1f} s: {what}"
        assert not self.probe.failures, self.probe.failures[:3]

    def together(self, count, request):
        """The results of `count` requests at the same time."""
        results, threads = [], []
        for number in range(count):
            threads.append(threading.Thread(target=lambda n=number: results.append(request(n))))
            threads[-1].start()
        for thread in threads:
            thread.join()
        return results

    def stop(self):
        self.probe.stop()
        self.hostile.stop()
        self.server.terminate()
        try:
            self.server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()


def config_map(name, what, size=10):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"hook": what}},
            "data": {"k": "x" * size}}


def hook(attack, what, **more):
    return {"name": f"{what}.example.com", "clientConfig": {"url": attack.hostile.url(what), "caBundle": attack.hostile.bundle},
            "objectSelector": {"matchLabels": {"hook": what}}, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 2, "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                                            "resources": ["configmaps"]}], **more}


def webhooks(attack):
    calls = {"hang": "context deadline exceeded", "endless": "larger than", "nested": "not JSON", "values": "was absent",
             "redirect": "status 302", "upgrade": "", "headers": ""}
    patches = {"doubling": "", "operations": "maximum operations", "long": "larger than 1572864 bytes", "moves": "", "not-a-patch": "",
               "warnings": None, "denies": "denied the request", "explains": "denied the request"}
    attack.create(HOOKS + "validatingwebhookconfigurations", {
        "metadata": {"name": "v"}, "webhooks": [hook(attack, each) for each in calls]})
    attack.create(HOOKS + "mutatingwebhookconfigurations", {
        "metadata": {"name": "m"}, "webhooks": [hook(attack, each) for each in patches]})
    for what, expected in {**calls, **patches}.items():
        begun = time.monotonic()
        status, text = attack.ask("POST", CONFIG_MAPS, config_map(what, what))
        took = time.monotonic() - begun
        assert took < 2 + SECONDS_MAX, (what, took)
        assert len(text) < 1 << 17, (what, len(text))
        if expected is None:
            assert status == 201, (what, status, text[:300])
        else:
            assert status >= 400 and expected in text, (what, status, text[:300])
            assert attack.ask("GET", f"{CONFIG_MAPS}/{what}")[0] == 404, what
        attack.check(f"webhook {what}: {status}")
    assert attack.ask("GET", "/api/v1/namespaces/kube-system/configmaps/moves")[0] == 404

    before = attack.resident()
    results = attack.together(MANY, lambda n: attack.ask("POST", CONFIG_MAPS, config_map(f"e{n}", "endless")))
    assert all(status >= 400 for status, _ in results), [status for status, _ in results]
    grown = attack.resident() - before
    attack.check(f"{MANY} answers of webhooks without an end: grown by {grown} MiB")
    assert grown < 250, grown

    # The largest objects wait for a webhook that does not answer: some fail at once instead.
    before = attack.resident()
    results = attack.together(MANY * 2, lambda n: attack.ask("POST", CONFIG_MAPS, config_map(f"h{n}", "hang", 1_000_000)))
    refused = sum("too many large objects" in text for _, text in results)
    grown = attack.resident() - before
    attack.check(f"{MANY * 2} large objects for a webhook that hangs: {refused} failed at once, grown by {grown} MiB")
    assert refused > 0, sorted({(status, text[:200]) for status, text in results})[:3]
    assert grown < 400, grown
    for kind in ("validating", "mutating"):
        attack.ask("DELETE", HOOKS + f"{kind}webhookconfigurations/{kind[0]}")


def api_services(attack):
    attack.create("/api/v1/namespaces/default/services", {
        "metadata": {"name": "hostile"}, "spec": {"clusterIP": "None", "ports": [{"name": "https", "port": 443}]}})
    attack.create("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", {
        "metadata": {"name": "hostile", "labels": {"kubernetes.io/service-name": "hostile"}}, "addressType": "IPv4",
        "ports": [{"name": "https", "port": attack.hostile.port}],
        "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}]})
    attack.create("/apis/apiregistration.k8s.io/v1/apiservices", {
        "metadata": {"name": f"v1.{GROUP}"}, "spec": {
            "group": GROUP, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "caBundle": attack.hostile.bundle, "service": {"namespace": "default", "name": "hostile"}}})
    available = lambda: attack.ask("GET", ROOT_PATH + "/things")[0] == 200
    wait_until("the API is available", available, 30)

    # Who asks is what the API server says, whatever the client sends.
    user = Identity(attack.ca, attack.make.certificate("mallory", "mallory"))
    assert user.ask(attack.port, "GET", ROOT_PATH + "/things")[0] == 403
    spoofed = [("X-Remote-User", "admin"), ("x-remote-group", "system:masters"), ("X-Remote-Extra-A", "b"),
               ("X-Remote-Uid", "0"), ("Connection", "X-Remote-User, X-Remote-Group"), ("Authorization", "Bearer secret"),
               ("Impersonate-User", "jane"), ("Impersonate-Group", "dev"), ("X-Drakkar-Aggregator-Hops", "0")]
    assert user.ask(attack.port, "GET", ROOT_PATH + "/things", headers=spoofed)[0] == 403
    attack.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", {
        "metadata": {"name": "things"}, "rules": [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}]})
    attack.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        "metadata": {"name": "things"}, "subjects": [
            {"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"} for name in ("mallory", "jane")],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "things"}})
    attack.hostile.seen.clear()
    assert attack.ask("GET", ROOT_PATH + "/things?x=1", headers=spoofed)[0] == 200
    headers = [(name.lower(), value) for path, each in attack.hostile.seen if "x=1" in path for name, value in each]
    assert [value for name, value in headers if name == "x-remote-user"] == ["jane"], headers
    assert {value for name, value in headers if name == "x-remote-group"} == {"dev", "system:authenticated"}, headers
    assert not any(name.startswith(("impersonate-", "x-remote-extra", "x-remote-uid")) or name in ("authorization", "connection")
                   for name, _ in headers), headers
    attack.check("an identity of the client's own")

    # Servers that read an underscore as a hyphen, and names that become others in a header.
    attack.hostile.seen.clear()
    underscores = [("X_Remote_User", "admin"), ("X-Remote_Group", "system:masters"), ("Impersonate_User", "admin")]
    assert user.ask(attack.port, "GET", ROOT_PATH + "/things?x=2", headers=underscores)[0] == 200
    assert not any("admin" in value or "masters" in value for path, each in attack.hostile.seen if "x=2" in path
                   for _, value in each), attack.hostile.seen
    for number, (name, groups) in enumerate([("admin ", []), (" admin", []), ("mallory", ["system:masters "]),
                                             ("mallory", [" system:masters"])]):
        attack.hostile.seen.clear()
        padded = Identity(attack.ca, attack.make.certificate(f"{number}-padded", name, groups))
        assert padded.ask(attack.port, "GET", ROOT_PATH + "/things?x=3")[0] in (400, 403), (name, groups)
        assert not any("x=3" in path for path, _ in attack.hostile.seen), attack.hostile.seen
    attack.check("an identity that a header changes")

    # Over HTTP/2 a path or a header can have any bytes.
    for path in (f"{ROOT_PATH}/things HTTP/1.1\r\nX-Remote-User: admin\r\nX: y", f"{ROOT_PATH}/things\r\n\r\nGET / HTTP/1.1",
                 f"{ROOT_PATH}/things\x00", f"{ROOT_PATH}/things two"):
        attack.hostile.seen.clear()
        connection = hyper_flood.connect(attack.admin.context, attack.port)
        connection.settimeout(2)
        try:
            connection.sendall(hyper_flood.frame(hyper_flood.HEADERS, hyper_flood.END_STREAM | hyper_flood.END_HEADERS, 1,
                                                 hyper_flood.head(path)))
            while connection.recv(65536):
                pass
        except OSError:
            pass
        connection.close()
        asked = [each for each, _ in attack.hostile.seen if "things" in each]
        assert not asked, (path, asked)
        assert not any(value == "admin" for _, each in attack.hostile.seen for name, value in each
                       if name.lower() == "x-remote-user"), path
    attack.admin.context.set_alpn_protocols(["http/1.1"])
    attack.check("requests inside of a path")

    expected = {"redirect": 502, "split": 200, "headers": 503, "upgrade": 503, "nested": 200}
    for what, wanted in expected.items():
        status, _ = attack.ask("GET", f"{ROOT_PATH}/{what}")
        assert status == wanted, (what, status)
        attack.check(f"an answer of an APIService, {what}: {status}")

    # Answers without an end, to clients that do not read.
    before = attack.resident()
    held = []
    for number in range(MANY):
        connection = attack.admin.context.wrap_socket(__import__("socket").create_connection(("127.0.0.1", attack.port)))
        connection.sendall(f"GET {ROOT_PATH}/endless?watch=true&n={number} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        held.append(connection)
    time.sleep(4)
    grown = attack.resident() - before
    attack.check(f"{MANY} answers without an end that nobody reads: grown by {grown} MiB")
    assert grown < 200, grown
    for connection in held:
        connection.close()

    # A server that hangs leaves room for other users.
    def ask_slowly():
        try:
            attack.ask("GET", f"{ROOT_PATH}/hang")
        except OSError:
            pass  # it takes too long

    slow = [threading.Thread(target=ask_slowly) for _ in range(120)]
    for thread in slow:
        thread.start()
    time.sleep(2)
    assert user.ask(attack.port, "GET", ROOT_PATH + "/things")[0] == 200
    assert attack.ask("GET", ROOT_PATH + "/things")[0] == 429
    attack.check("120 requests for a server that hangs")
    for thread in slow:
        thread.join()

    # Discovery: the core asks for it, so it must not be expensive.
    for what in ("endless", "values", "nested", "hang", "redirect"):
        attack.hostile.discovery = what
        for number in range(3):
            attack.ask("PATCH", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/hostile",
                       {"metadata": {"labels": {"n": f"{what}{number}"}}}, kind="application/merge-patch+json")
            time.sleep(0.5)
        attack.check(f"resources of an APIService, {what}")
    attack.hostile.discovery = "resources"
    attack.ask("DELETE", f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{GROUP}")


def definition(plural, schema, **more):
    kind = plural.capitalize()
    return {"metadata": {"name": f"{plural}.example.com"}, "spec": {
        "group": "example.com", "scope": "Cluster", "names": {"plural": plural, "kind": kind},
        "versions": [{"name": "v1", "served": True, "storage": True,
                      "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                          "spec": {"type": "object", "properties": schema}}}}}], **more}}


def definitions(attack):
    nested = {"type": "object"}
    for _ in range(40):
        nested = {"type": "object", "properties": {"a": nested, "b": {"type": "string"}}}
    rule = "self.all(a, self.all(b, self.all(c, a + b + c != 'x')))"
    schemas = {
        "patterns": {f"p{i}": {"type": "string", "pattern": r"\pL{10}" + str(i)} for i in range(3_000)},
        "large patterns": {f"p{i}": {"type": "string", "pattern": r"(\pL{1000}){1000}" + str(i)} for i in range(3_000)},
        "fields": {f"field{i}": {"type": "string"} for i in range(60_000)},
        "deep": {"deep": nested},
        "rules": {"r": {"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": [{"rule": rule}] * 500}},
        "alternatives": {"s": {"type": "string", "anyOf": [{"pattern": "a"}] * 20_000}},
        "enumerations": {"s": {"type": "string", "enum": [f"value{i}" for i in range(100_000)]}},
    }
    for what, schema in schemas.items():
        begun = time.monotonic()
        status, text = attack.ask("POST", DEFINITIONS, definition(what.replace(" ", ""), schema))
        assert time.monotonic() - begun < 3 * SECONDS_MAX, what
        assert len(text) < 8 << 20
        attack.check(f"definition with {what}: {status}")
        attack.ask("DELETE", f"{DEFINITIONS}/{what.replace(' ', '')}.example.com")

    attack.create(DEFINITIONS, definition("boats", {
        "crew": {"type": "array", "items": {"type": "object", "properties": {
            "text": {"type": "string", "default": "x" * 20_000}, "n": {"type": "integer"}}}},
        "byName": {"type": "object", "additionalProperties": {"type": "array", "items": {
            "type": "object", "properties": {"a": {"type": "integer"}}}}},
        "text": {"type": "string", "pattern": "(a|b)*a(a|b){900}c"},
        "names": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "kinds": {"type": "array", "items": {"type": "string", "enum": [f"kind{i}" for i in range(2_000)]}},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {
            "type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}}}))
    wait_until("boats are served", lambda: attack.ask("GET", BOATS)[0] == 200, 30)
    boat = lambda spec: json.dumps({"apiVersion": "example.com/v1", "kind": "Boats", "metadata": {"name": "b"}, "spec": spec},
                                   separators=(",", ":"))
    objects = {
        "defaults": {"crew": [{}] * 100_000},
        "unknown fields below a long name": {"byName": {"n" * 1_000_000: [{"u": 1}] * 100_000}},
        "unknown fields": {"byName": {"n": [{f"u{i}": 1} for i in range(100_000)]}},
        "a text for a pattern": {"text": "ab" * 400_000},
        "texts for a pattern": {"text": "ab" * 4_000},
        "names": {"names": [f"n{i}" for i in range(150_000)]},
        "kinds": {"kinds": ["kind1999"] * 150_000},
        "keys": {"keyed": [{"k": f"k{i}"} for i in range(100_000)]},
        "wrong types": {"names": [1] * 350_000},
    }
    for what, spec in objects.items():
        before = attack.resident()
        for validation in ("Strict", "Ignore"):
            begun = time.monotonic()
            status, text = attack.ask("POST", f"{BOATS}?dryRun=All&fieldValidation={validation}", boat(spec))
            took = time.monotonic() - begun
            assert took < 2 * SECONDS_MAX, (what, validation, took)
            assert status in (201, 400, 413, 422), (what, status, text[:300])
            assert len(text) < 16 << 20, (what, len(text))
            attack.check(f"custom object with {what}, {validation}: {status} in {took * 1000:.0f} ms")
        grown = attack.resident() - before
        assert grown < 250, (what, grown)


def conversions(attack):
    versions = [{"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": True}}} for name in ("v1", "v2")]
    for what in ("steals", "forgets", "multiplies", "endless", "values", "nested", "redirect"):
        plural = f"{what}ships"
        body = definition(plural, {}, conversion={"strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"url": attack.hostile.url(what), "caBundle": attack.hostile.bundle}}})
        body["spec"]["versions"] = versions
        attack.create(DEFINITIONS, body)
        path = lambda version: f"/apis/example.com/{version}/{plural}"
        wait_until("it is served", lambda: attack.ask("GET", path("v1"))[0] == 200, 30)
        for number in range(20):
            attack.create(path("v1"), {"apiVersion": "example.com/v1", "kind": plural.capitalize(),
                                       "metadata": {"name": f"s{number}"}, "spec": {"k": "x" * 100_000}})
        begun = time.monotonic()
        status, text = attack.ask("GET", path("v2"))
        assert status == 500, (what, status, text[:300])
        assert time.monotonic() - begun < 15, what
        assert attack.ask("GET", path("v1") + "?limit=1")[0] == 200
        attack.check(f"conversion webhook {what}: {json.loads(text)['message'][:90]}")


def main():
    if not shutil.which("openssl"):
        print("skipped: needs openssl")
        raise SystemExit(SKIP)
    attack = Attack(sys.argv[1])
    try:
        for part in (webhooks, api_services, definitions, conversions):
            if len(sys.argv) < 3 or part.__name__ in sys.argv[2:]:
                part(attack)
        print("ok")
    except BaseException:
        print((attack.work / "log").read_text()[-3000:])
        raise
    finally:
        attack.stop()
        shutil.rmtree(attack.work, ignore_errors=True)


if __name__ == "__main__":
    main()
