"""What the store really went through: every change of every key in the order of revisions, read from etcd itself and not
through an API server."""
import base64
import dataclasses
import http.client
import json
import random
import threading
import time

PREFIX = "/registry/"


@dataclasses.dataclass
class Change:
    revision: int
    key: str
    document: dict | None  # None: deleted
    created: bool = False


def encode(text):
    return base64.b64encode(text.encode()).decode()


def call(address, method, body, timeout=5):
    connection = http.client.HTTPConnection(address, 2379, timeout=timeout)
    try:
        connection.request("POST", f"/v3/{method}", json.dumps(body))
        answer = connection.getresponse()
        document = json.loads(answer.read())
        if answer.status != 200:
            raise OSError(f"etcd {address}: {document}")
        return document
    finally:
        connection.close()


def put(addresses, key, value, seconds=30):
    """Writes to etcd at whichever member accepts it, and returns the revision."""
    deadline = time.monotonic() + seconds
    while True:
        for address in addresses:
            try:
                return int(call(address, "kv/put", {"key": encode(key), "value": encode(value)})["header"]["revision"])
            except (OSError, ValueError, KeyError):
                assert time.monotonic() < deadline, "etcd accepts no write"


class Auditor:
    """Follows etcd with its own watch, and moves it to another member when it fails. `changes` is complete up to
    `revision`."""

    def __init__(self, addresses, prefixes, seed, after=0):
        self.addresses, self.prefixes = addresses, prefixes
        self.random = random.Random(seed)
        self.changes, self.revision, self.broken = [], after, None
        self.done = threading.Event()
        self.turns = []  # (time, member, revision, why the last one was left)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.done.is_set() and self.broken is None:
            address = self.random.choice(self.addresses)
            try:
                self._follow(address)
                self.turns.append((time.monotonic(), address, self.revision, "end"))
            except (OSError, http.client.HTTPException, ValueError) as why:
                self.turns.append((time.monotonic(), address, self.revision, repr(why)))
                time.sleep(0.2)

    def _follow(self, address):
        connection = http.client.HTTPConnection(address, 2379, timeout=3)
        try:
            end = PREFIX[:-1] + chr(ord(PREFIX[-1]) + 1)
            connection.request("POST", "/v3/watch", json.dumps({"create_request": {
                "key": encode(PREFIX), "range_end": encode(end), "start_revision": str(self.revision + 1)}}))
            answer = connection.getresponse()
            while not self.done.is_set():
                line = answer.readline()
                if not line:
                    return
                result = json.loads(line).get("result", {})
                if result.get("compact_revision"):
                    self.broken = (f"revision {self.revision + 1} was compacted before it was read; "
                                   f"before that: {self.turns[-20:]}")
                    return
                self._take(result.get("events", []))
        finally:
            connection.close()

    def _take(self, events):
        for event in events:
            kv = event["kv"]
            revision, key = int(kv["mod_revision"]), base64.b64decode(kv["key"]).decode()
            deleted = event.get("type") == "DELETE"
            if any(key.startswith(PREFIX + prefix) for prefix in self.prefixes):
                document = None if deleted else json.loads(base64.b64decode(kv["value"]) or b"null")
                self.changes.append(Change(revision, key[len(PREFIX):], document,
                                           not deleted and kv.get("create_revision") == kv["mod_revision"]))
            self.revision = revision

    def finish(self, seconds=60):
        """Reads up to the store's present revision and ends."""
        # A change of our own: the watch arrives at it.
        last = put(self.addresses, PREFIX + "drakkar.io/soak-end", "{}", seconds)
        deadline = time.monotonic() + seconds
        while self.revision < last and self.broken is None:
            assert time.monotonic() < deadline, f"the audit is at revision {self.revision}, the store at {last}"
            time.sleep(0.05)
        self.done.set()
        assert self.broken is None, self.broken
