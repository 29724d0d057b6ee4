"""Looks at the nodes from outside, about once a second: which containers run, which claims the driver has prepared, and
which are in the node's checkpoint."""
import dataclasses
import os
import pathlib
import threading

from verdicts import UUID


@dataclasses.dataclass
class Sample:
    containers: frozenset   # (pod, devices) that ran before and after the rest was read
    prepared: frozenset     # claim UIDs
    checkpoints: frozenset  # claim UIDs


def running_containers():
    found = set()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            variables = pathlib.Path("/proc", entry, "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        values = dict(v.decode(errors="replace").partition("=")[::2] for v in variables if b"=" in v)
        if "SOAK_POD" in values:
            found.add((int(entry), values["SOAK_POD"], values.get("DRAKKAR_DEVICES", "")))
    return found


class Sampler(threading.Thread):
    def __init__(self, nodes):
        super().__init__(daemon=True)
        self.nodes, self.samples = nodes, []
        self.stopped = threading.Event()

    def prepared(self):
        return frozenset(uid for node in self.nodes for path in (node.disk / "node/cdi").glob("*_claim_*.json")
                         for uid in UUID.findall(path.name))

    def checkpoints(self):
        found = set()
        for node in self.nodes:
            for path in (node.disk / "node/kubelet").glob("dra_manager_state*"):
                try:
                    found.update(UUID.findall(path.read_text(errors="replace")))
                except OSError:
                    pass
        return frozenset(found)

    def run(self):
        while not self.stopped.wait(1):
            before = running_containers()
            prepared, checkpoints = self.prepared(), self.checkpoints()
            containers = frozenset((pod, devices) for _, pod, devices in before & running_containers())
            if containers:
                self.samples.append(Sample(containers, prepared, checkpoints))
