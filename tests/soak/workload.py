"""The clients of `./dev soak cluster`. Each records its requests with their times and answers."""
import dataclasses
import json
import math
import random
import threading
import time
import uuid
from http.client import HTTPException

from linearizable import Operation

NAMESPACE = "soak"
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/{NAMESPACE}/resourceclaims"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
RIVAL = "rival.example.com"
MERGE = "application/merge-patch+json"
KEYS = 12


class Transport:
    """One client's connections to the servers."""

    context = None  # the administrator's

    def __init__(self, deployment, seed):
        self.deployment = deployment
        self.random = random.Random(seed)
        self.connections = {}
        self.counts = {}

    def ask(self, method, path, body=None, kind="application/json", server=None):
        """(server, status, document). Status None: the outcome is unknown; 0: it did not happen."""
        server = server or self.random.choice(self.deployment.servers())
        connection = self.connections.get(server)
        try:
            if connection is None:
                connection = self.deployment.connect(server, 5, self.context)
                connection.connect()
                connection.sock.settimeout(10)
                self.connections[server] = connection
        except OSError:
            self._count("no connection")
            return server, 0, {}
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": kind})
            answer = connection.getresponse()
            status, text = answer.status, answer.read()
        except (OSError, HTTPException):
            connection.close()
            self.connections.pop(server, None)
            self._count("cut off")
            return server, None, {}
        self._count(str(status))
        try:
            return server, status, json.loads(text)
        except ValueError:
            return server, status, {}

    def _count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1


@dataclasses.dataclass
class Record:
    """An operation on one key, with the revision that the answer named."""
    key: str
    operation: Operation
    server: str
    revision: int = 0


@dataclasses.dataclass
class Listing:
    call: float
    end: float
    server: str
    revision: int
    items: dict  # key -> (revision, value)


class Client(threading.Thread):
    """A thread that repeats `act` until the test is over."""

    pause = 0.05

    def __init__(self, deployment, number, seed):
        super().__init__(daemon=True)
        self.name = f"{type(self).__name__.lower()}-{number}"
        self.deployment = deployment
        self.random = random.Random(f"{seed}/{self.name}")
        self.transport = self.make_transport(f"{seed}/{self.name}/transport")
        self.stopped = threading.Event()
        self.error = None

    def make_transport(self, seed):
        return Transport(self.deployment, seed)

    def run(self):
        try:
            while not self.stopped.wait(self.pause * self.random.uniform(0.5, 1.5)):
                self.act()
        except Exception as why:  # pylint: disable=broad-except
            self.error = f"{self.name}: {why!r}"
            raise


class Registers(Client):
    """Reads, creates, changes and deletes ConfigMaps that all of these clients share."""

    prefix = "key"

    def __init__(self, deployment, number, seed):
        super().__init__(deployment, number, seed)
        self.records, self.listings, self.count = [], [], 0
        self.known = {}  # key -> (value, resourceVersion) as last read

    def act(self):
        key = f"{self.prefix}-{self.random.randrange(KEYS)}"
        self.random.choices((self.read, self.list, self.create, self.swap, self.set, self.delete),
                            (30, 8, 12, 35, 10, 5))[0](key)

    def body(self, key):
        self.count += 1
        value = f"{self.name}.{self.count}"
        return value, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": key}, "data": {"v": value}}

    def note(self, key, kind, begun, server, status, document, refused, **fields):
        """Records a write. Returns whether it happened."""
        if status == 0 or (status is not None and status < 500 and status not in (200, 201, *refused)):
            return False  # it has not happened, for a reason that says nothing about the key
        operation = Operation(kind, begun, time.monotonic(), client=self.name, **fields)
        if status is None or status >= 500:
            operation.outcome, operation.end = "unknown", math.inf
        elif status in refused:
            operation.outcome = "refused"
        revision = int(document.get("metadata", {}).get("resourceVersion", 0)) if status in (200, 201) else 0
        self.records.append(Record(key, operation, server, revision))
        return operation.outcome == "ok"

    def read(self, key):
        begun = time.monotonic()
        server, status, document = self.transport.ask("GET", f"{MAPS}/{key}")
        if status not in (200, 404):
            return
        value = document["data"]["v"] if status == 200 else None
        revision = int(document["metadata"]["resourceVersion"]) if status == 200 else 0
        self.records.append(Record(key, Operation("read", begun, time.monotonic(), observed=value, client=self.name),
                                   server, revision))
        self.known[key] = (value, document.get("metadata"))

    def list(self, _):
        begun = time.monotonic()
        server, status, document = self.transport.ask("GET", MAPS)
        if status == 200:
            self.listings.append(Listing(begun, time.monotonic(), server, int(document["metadata"]["resourceVersion"]), {
                i["metadata"]["name"]: (int(i["metadata"]["resourceVersion"]), i["data"]["v"]) for i in document["items"]
                if "v" in i.get("data", {})}))  # not the certificate that a controller publishes in every namespace

    def create(self, key):
        value, body = self.body(key)
        begun = time.monotonic()
        server, status, document = self.transport.ask("POST", MAPS, body)
        self.note(key, "create", begun, server, status, document, (409,), value=value)

    def swap(self, key):
        value_before, metadata = self.known.get(key, (None, None))
        if not metadata or value_before is None:
            return self.read(key)
        value, body = self.body(key)
        body["metadata"] = metadata
        begun = time.monotonic()
        server, status, document = self.transport.ask("PUT", f"{MAPS}/{key}", body)
        if self.note(key, "swap", begun, server, status, document, (404, 409), value=value, expected=value_before):
            self.known[key] = (value, document["metadata"])
        else:
            self.known.pop(key)

    def set(self, key):
        value, _ = self.body(key)
        begun = time.monotonic()
        server, status, document = self.transport.ask("PATCH", f"{MAPS}/{key}", {"data": {"v": value}}, MERGE)
        self.note(key, "set", begun, server, status, document, (404,), value=value)

    def delete(self, key):
        begun = time.monotonic()
        server, status, document = self.transport.ask("DELETE", f"{MAPS}/{key}")
        self.note(key, "delete", begun, server, status, {}, (404,))


class Watcher(Client):
    """Follows the ConfigMaps from server to server. `streams` are runs of events without a gap: (start, events), where an
    event is (type, key, revision, value); after 410 Expired it lists and begins a new one."""

    pause = 0.1

    def __init__(self, deployment, number, seed):
        super().__init__(deployment, number, seed)
        self.streams, self.revision, self.moves = [], None, 0

    def start_stream(self):
        _, status, document = self.transport.ask("GET", MAPS)
        if status == 200:
            self.revision = int(document["metadata"]["resourceVersion"])
            self.streams.append((self.revision, []))

    def act(self):
        if self.revision is None:
            return self.start_stream()
        connection = self.deployment.connect(self.random.choice(self.deployment.servers()), timeout=5)
        self.moves += 1
        try:
            connection.request("GET", f"{MAPS}?watch=1&allowWatchBookmarks=true&resourceVersion={self.revision}"
                                      f"&timeoutSeconds={self.random.randint(4, 15)}")
            answer = connection.getresponse()
            if answer.status == 410:
                self.revision = None
            while answer.status == 200 and not self.stopped.is_set():
                line = answer.readline()
                if not line.endswith(b"\n"):
                    return
                if not self.take(json.loads(line)):
                    return
        except (OSError, HTTPException, ValueError):
            pass
        finally:
            connection.close()

    def take(self, event):
        if event["type"] == "ERROR":
            if event["object"].get("code") == 410:
                self.revision = None
            return False
        metadata = event["object"]["metadata"]
        revision = int(metadata["resourceVersion"])
        self.streams[-1][1].append((event["type"], metadata.get("name"), revision, event["object"].get("data", {}).get("v")))
        self.revision = revision
        return True


class Rivals(Client):
    """Allocates devices directly, at any server, without checking who holds them, as several schedulers would that do
    not know of each other. The driver has exclusive devices, devices that share capacity, and a card whose halves
    exclude the whole."""

    pause = 0.04
    CLAIMS_EACH = 8

    def __init__(self, deployment, number, seed):
        super().__init__(deployment, number, seed)
        self.accepted = self.conflicts = 0
        self.claims = [f"rival-{number}-{n}" for n in range(self.CLAIMS_EACH)]

    @staticmethod
    def set_up(deployment):
        def create(path, body):
            status, document = deployment.api("POST", path, body)
            assert status in (201, 409), document
        create(f"{GROUP}/deviceclasses", {
            "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": RIVAL},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{RIVAL}"'}}]}})

        def counters(amount):
            return [{"counterSet": "card", "counters": {"memory": {"value": str(amount)}}}]
        devices = [{"name": f"gpu-{n}"} for n in range(5)] + [
            {"name": "half-0", "consumesCounters": counters(4)}, {"name": "half-1", "consumesCounters": counters(4)},
            {"name": "whole", "consumesCounters": counters(8)},
            {"name": "nic", "allowMultipleAllocations": True, "capacity": {"bandwidth": {"value": "10"}}}]
        pool = {"name": "pool", "generation": 1, "resourceSliceCount": 2}
        for name, spec in (("devices", {"devices": devices}),
                           ("counters", {"sharedCounters": [{"name": "card", "counters": {"memory": {"value": "8"}}}]})):
            create(f"{GROUP}/resourceslices", {
                "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"rival-{name}"},
                "spec": {"driver": RIVAL, "pool": pool, "allNodes": True, **spec}})

    def make_claims(self):
        for name in self.claims:
            admin = {"adminAccess": True} if name.endswith("-0") else {}
            status, document = self.deployment.api("POST", CLAIMS, {
                "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name},
                "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": RIVAL, **admin}}]}}})
            assert status in (201, 409), document

    def act(self):
        name = self.random.choice(self.claims)
        if self.random.random() < 0.4:
            self.transport.ask("PATCH", f"{CLAIMS}/{name}/status", {"status": {"allocation": None}}, MERGE)
            return
        device = self.random.choice(["gpu-0", "gpu-1", "gpu-2", "gpu-3", "gpu-4", "half-0", "half-1", "whole", "nic", "nic"])
        result = {"request": "r", "driver": RIVAL, "pool": "pool", "device": device}
        if name.endswith("-0"):
            result["adminAccess"] = True
        elif device == "nic":
            result.update(shareID=str(uuid.UUID(int=self.random.getrandbits(128), version=4)),
                          consumedCapacity={"bandwidth": str(self.random.choice([3, 5, 6]))})
        _, status, document = self.transport.ask("PATCH", f"{CLAIMS}/{name}/status", {
            "status": {"allocation": {"devices": {"results": [result]}}}}, MERGE)
        self.accepted += status == 200
        self.conflicts += status == 409
        # A claim that has another allocation already is 422, as it must be released first.
        assert status in (None, 0, 200, 409, 422, 429) or status >= 500, document


class Takers(Client):
    """Create and delete, at any server, Services that want the same cluster IPs and node ports, and Secrets of which a
    quota allows few."""

    pause = 0.1
    NUMBERS, PORTS, SECRETS_MAX = 8, 3, 3
    SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services"
    SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"

    def __init__(self, deployment, number, seed):
        super().__init__(deployment, number, seed)
        self.accepted = self.refused = 0

    @classmethod
    def set_up(cls, deployment):
        status, document = deployment.api("POST", f"/api/v1/namespaces/{NAMESPACE}/resourcequotas", {
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"},
            "spec": {"hard": {"count/secrets": str(cls.SECRETS_MAX)}}})
        assert status in (201, 409), document

    def act(self):
        number, port = self.random.randrange(self.NUMBERS), self.random.randrange(self.PORTS)
        is_secret = self.random.random() < 0.5
        path, name = (self.SECRETS, f"few-{number}") if is_secret else (self.SERVICES, f"taker-{number}")
        if self.random.random() < 0.4:
            self.transport.ask("DELETE", f"{path}/{name}")
            return
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
        if not is_secret:
            spec = {"type": "NodePort", "ports": [{"port": 80}]}
            if self.random.random() < 0.5:
                spec["ports"][0]["nodePort"] = 30000 + port
            else:
                spec["clusterIP"] = f"10.96.0.{10 + port}"
            body.update(kind="Service", spec=spec)
        _, status, document = self.transport.ask("POST", path, body)
        self.accepted += status == 201
        self.refused += status in (403, 422)
        assert status in (None, 0, 201, 403, 409, 422, 429) or status >= 500, document


SCRIPT = "trap 'exit 0' TERM; while :; do sleep 0.2 & wait $!; done"


class Pods(Client):
    """Pods with a device of the reference driver: created, watched until they run, deleted."""

    pause = 0.3
    ALIVE_MAX = 4

    def __init__(self, deployment, number, seed):
        super().__init__(deployment, number, seed)
        self.alive, self.count, self.started = {}, 0, 0

    @staticmethod
    def set_up(deployment):
        for path, body in (
                (f"{GROUP}/deviceclasses", {
                    "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "sim.drakkar.io"},
                    "spec": {"selectors": [{"cel": {"expression": 'device.driver == "sim.drakkar.io"'}}]}}),
                (f"{GROUP}/namespaces/{NAMESPACE}/resourceclaimtemplates", {
                    "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "one"},
                    "spec": {"spec": {"devices": {"requests": [
                        {"name": "r", "exactly": {"deviceClassName": "sim.drakkar.io"}}]}}}})):
            status, document = deployment.api("POST", path, body)
            assert status in (201, 409), document

    @staticmethod
    def pod(name):
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False,
            # Faults last for seconds; a pod stays where it is until its node answers again.
            "tolerations": [{"operator": "Exists"}],
            "resourceClaims": [{"name": "d", "resourceClaimTemplateName": "one"}],
            "containers": [{"name": "c", "image": "localhost/busybox:latest", "imagePullPolicy": "IfNotPresent",
                            "command": ["/bin/sh", "-c", SCRIPT], "resources": {"claims": [{"name": "d"}]},
                            "env": [{"name": "SOAK_POD", "value": name}]}]}}

    def act(self):
        if len(self.alive) < self.ALIVE_MAX and self.random.random() < 0.6:
            self.count += 1
            name = f"{self.name}-{self.count}"
            _, status, _ = self.transport.ask("POST", PODS, self.pod(name))
            if status in (201, None) or status >= 500:
                self.alive[name] = False
            return
        if not self.alive:
            return
        name = self.random.choice(sorted(self.alive))
        _, status, document = self.transport.ask("GET", f"{PODS}/{name}")
        if status == 404:
            self.alive.pop(name)
        elif status == 200:
            if document.get("status", {}).get("phase") == "Running" and not self.alive[name]:
                self.alive[name] = True
                self.started += 1
            if self.alive[name] or self.random.random() < 0.05:
                self.transport.ask("DELETE", f"{PODS}/{name}")


class Trespasser(Client):
    """A node's certificate, used to write what belongs to another node. Every success is a violation."""

    pause = 1

    def __init__(self, deployment, number, seed):
        super().__init__(deployment, number, seed)
        self.successes, self.refusals = [], 0
        self.transport.context = deployment.context_of_node(deployment.nodes[0])

    def act(self):
        theirs = self.random.choice(self.deployment.nodes[1:]).name
        method, path, body = self.random.choice([
            ("PATCH", f"/api/v1/nodes/{theirs}/status", {"status": {"phase": "Pending"}}),
            ("PATCH", f"/api/v1/nodes/{theirs}", {"metadata": {"labels": {"by": "another"}}}),
            ("PATCH", f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{theirs}",
             {"spec": {"holderIdentity": "another"}})])
        server, status, _ = self.transport.ask(method, path, body, MERGE)
        if status == 403:
            self.refusals += 1
        elif status and status < 300:
            self.successes.append(f"{path} at {server}")
