"""Planted bugs. These clients use their own keys, through a layer that falsifies their requests and answers. A run
whose checks do not find that proves nothing."""
import time

from workload import MAPS, Registers, Transport, Watcher


class LosesWrites(Transport):
    """Acknowledges some replacements and drops them."""

    def ask(self, method, path, body=None, kind="application/json", server=None):
        if method == "PUT" and self.random.random() < 0.1:
            metadata = dict(body["metadata"], resourceVersion=str(int(body["metadata"]["resourceVersion"]) + 1))
            return self.deployment.servers()[0], 200, {**body, "metadata": metadata}
        return super().ask(method, path, body, kind, server)


class ServesStaleReads(Transport):
    """Answers some reads with what the key was some seconds ago, and all lists: a short run has few of them."""

    def __init__(self, deployment, seed):
        super().__init__(deployment, seed)
        self.old = {}

    def ask(self, method, path, body=None, kind="application/json", server=None):
        kept = self.old.get(path)
        if method == "GET" and kept and time.monotonic() - kept[0] > 2 and (path == MAPS or self.random.random() < 0.3):
            return kept[1]
        answer = super().ask(method, path, body, kind, server)
        if method == "GET" and answer[1] == 200 and (not kept or time.monotonic() - kept[0] > 8):
            self.old[path] = (time.monotonic(), answer)
        return answer


class LostWrites(Registers):
    prefix, pause = "lost", 0.1

    def make_transport(self, seed):
        return LosesWrites(self.deployment, seed)


class StaleReads(Registers):
    prefix, pause = "stale", 0.1

    def make_transport(self, seed):
        return ServesStaleReads(self.deployment, seed)


class MissedEvents(Watcher):
    def take(self, event):
        if event["type"] == "MODIFIED" and self.random.random() < 0.1:
            return True
        return super().take(event)
