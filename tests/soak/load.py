"""The normal load: a client that creates, reads, changes and deletes objects, and remembers what it was promised."""
import json
import random
import time
from http.client import HTTPException, HTTPSConnection

COLLECTION = "/api/v1/namespaces/default/configmaps"
PAUSE_SECONDS = 0.01  # between requests, so that the load is not an attack itself


class Client:
    def __init__(self, number, seed, port, context):
        self.number = number
        self.random = random.Random(seed * 1000 + number)
        self.port = port
        self.context = context
        self.connection = None
        self.known = {}      # name -> the last value that was acknowledged, or None for a deletion
        self.uncertain = {}  # name -> values of which each may or may not have been stored
        self.latencies = []
        self.failures = {}
        self.count = 0

    def request(self, method, path, body=None):
        """Status and body, or None if nothing was promised."""
        began = time.monotonic()
        try:
            if self.connection is None:
                self.connection = HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=30)
            self.connection.request(method, path, json.dumps(body) if body else None,
                                    {"Content-Type": "application/json"})
            response = self.connection.getresponse()
            status, data = response.status, response.read()
        except (OSError, HTTPException) as error:
            self.connection = None
            self.failures[type(error).__name__] = self.failures.get(type(error).__name__, 0) + 1
            return None, b""
        self.latencies.append(time.monotonic() - began)
        if status >= 500 or status == 429:
            self.failures[status] = self.failures.get(status, 0) + 1
        return status, data

    def settle(self, name, value, status, done):
        if status in done:
            self.known[name] = value
            self.uncertain.pop(name, None)
        elif status is None or status >= 500:
            self.uncertain.setdefault(name, []).append(value)

    def step(self):
        self.count += 1
        name = f"load-{self.number}-{self.random.randrange(200)}"
        value = f"{self.number}.{self.count}"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}}
        known = self.known.get(name)
        if known is None:
            status, _ = self.request("POST", COLLECTION, body)
            self.settle(name, value, status, (201,))
            if status == 409:  # a create of before, whose answer was lost, happened
                self.uncertain.setdefault(name, []).append(None)
                self.known[name] = self.known.get(name) or ""
        elif self.random.random() < 0.6:
            status, _ = self.request("PUT", f"{COLLECTION}/{name}", body)
            self.settle(name, value, status, (200,))
            if status == 404:
                self.known[name] = None
        elif self.random.random() < 0.5:
            self.request("GET", f"{COLLECTION}/{name}")
        else:
            status, _ = self.request("DELETE", f"{COLLECTION}/{name}")
            self.settle(name, None, status, (200, 404))


def run(number, seed, port, context_args, stop, results):
    import ssl
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(*context_args)
    client = Client(number, seed, port, context)
    while not stop.is_set():
        client.step()
        time.sleep(PAUSE_SECONDS)
    results.put((client.known, client.uncertain, client.latencies, client.failures))
