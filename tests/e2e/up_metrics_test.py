#!/usr/bin/env python3
"""`drakkar up` serves the metrics of scheduler and controllers that the proposals' monitoring sections
expect, to clients that the API server authorizes; and `drakkar why` agrees with this scheduler.
No node agent and no containers: the pod waits for a device that never becomes ready."""
import json
import pathlib
import re
import socket
import subprocess

from cluster import free_port, scheduler_configuration, wait_until
from fabric_test import DRAKKAR, World

LIMITS = pathlib.Path(__file__).parents[2] / "docs" / "limits.md"
OBJECTS = [
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
     "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"}}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": {
        "driver": "d.example.com", "nodeName": "n1", "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "dev-0", "bindingConditions": ["attached"], "bindingFailureConditions": ["failed"]}]}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"},
     "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}},
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "c", "image": "i"}], "resourceClaims": [{"name": "d", "resourceClaimName": "c"}]}},
]


def metric(text, name):
    """The sum of all lines with this prefix."""
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


class Up(World):
    def __init__(self):
        super().__init__()
        (self.work / "short.yaml").write_text(scheduler_configuration("1s"))

    def up(self, *flags):
        self.api, self.scheduler, self.controllers = free_port(), free_port(), free_port()
        self.start("up", DRAKKAR, "up", f"--data-dir={self.work}/data", "--node=false", f"--port={self.api}",
                   f"--scheduler-port={self.scheduler}", f"--controllers-port={self.controllers}", *flags)
        wait_until("the scheduler is ready",
                   lambda: self.fetch(f"https://127.0.0.1:{self.scheduler}/readyz")[0] == 200, 60)

    def why(self):
        answer = subprocess.run([DRAKKAR, "why", "pod", "p"], capture_output=True, text=True, check=False,
                                env={"KUBECONFIG": str(self.kubeconfig)})
        return answer.returncode, answer.stdout + answer.stderr


def main():
    with Up() as world:
        world.up(f"--scheduler-config={world.work}/short.yaml")
        world.check_who_may_look(world.scheduler)
        assert world.fetch(f"https://127.0.0.1:{world.controllers}/metrics")[0] == 403
        status, text = world.fetch(f"https://127.0.0.1:{world.controllers}/metrics", world.admin_context())
        assert status == 200 and "# TYPE " in text, (status, text)
        status, text = world.fetch(f"https://127.0.0.1:{world.api}/metrics", world.admin_context())
        for name in re.findall(r"^\| `(\w+)` \|", LIMITS.read_text(), re.M):
            assert f'drakkar_limit{{name="{name}"}}' in text, f"{name} of docs/limits.md is not in /metrics"
            assert f'drakkar_limit_usage{{name="{name}"}}' in text, name
        for each in OBJECTS:
            world.drakkar("create", "-f", "-", stdin=json.dumps(each))
        for i in range(12):  # plugins are measured in every tenth attempt
            world.drakkar("create", "-f", "-", stdin=json.dumps({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"plain-{i}"},
                "spec": {"containers": [{"name": "c", "image": "i"}]}}))
        # KEP-5007: timeouts are counted; KEP-5328: pending pods and plugin durations.
        wait_until("the wait for the device times out", lambda: metric(
            world.page(world.scheduler, "/metrics"),
            'scheduler_dra_bindingconditions_allocations_total{status="timeout"}') >= 1)
        text = world.page(world.scheduler, "/metrics")
        for name in ("scheduler_dra_bindingconditions_prebind_duration_seconds_bucket", "scheduler_pending_pods{",
                     "scheduler_plugin_execution_duration_seconds_count"):
            assert name in text, name
        code, told = world.why()
        assert code == 0 and "waits for condition attached of device d.example.com/n1/dev-0" in " ".join(told.split()), told
        assert world.end("up") == 0

        world.up("--feature-gates=DRADeviceBindingConditions=false")
        wait_until("why uses the gates of the scheduler that runs now", lambda: world.why()[0] == 1)
        assert world.end("up") == 0

        # If a port given by flag is in use, the start fails.
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            process = world.start("taken", DRAKKAR, "up", f"--data-dir={world.work}/data", "--node=false", "--port=0",
                                  f"--scheduler-port={holder.getsockname()[1]}", "--controllers-port=0")
            assert process.wait(timeout=30) != 0
            del world.processes["taken"]
    print("ok: who sees which metrics of `up`, and why with the scheduler's gates")


if __name__ == "__main__":
    main()
