"""Node figures: preparing a claim, starting a pod, health from driver to API, memory per pod."""
import contextlib
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def sync_p99_ms(directory):
    """The time the disk needs to make 4 KiB durable."""
    times = []
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        for _ in range(300):
            file.write(b"x" * 4096)
            file.flush()
            begun = time.monotonic()
            os.fsync(file.fileno())
            times.append((time.monotonic() - begun) * 1e3)
    return percentile(times, 0.99)


def stolen_ms():
    """CPU steal time since boot: how long the host did not run this machine's busy processors."""
    return int(pathlib.Path("/proc/stat").read_text().split()[8]) * 1000 / os.sysconf("SC_CLK_TCK")


def histogram_quantile(text, name, labels, share):
    """Seconds, interpolated within the bucket, and the count."""
    buckets = []
    for line in text.splitlines():
        if line.startswith(name + "_bucket") and all(label in line for label in labels):
            bound = re.search(r'le="([^"]+)"', line).group(1)
            buckets.append((float("inf") if bound == "+Inf" else float(bound), float(line.rsplit(" ", 1)[1])))
    buckets.sort()
    if not buckets or buckets[-1][1] == 0:
        return None, 0
    wanted, below, low = share * buckets[-1][1], 0.0, 0.0
    for bound, count in buckets:
        if count >= wanted:
            return low + (bound - low) * (wanted - below) / max(count - below, 1), int(buckets[-1][1])
        below, low = count, bound
    return buckets[-1][0], int(buckets[-1][1])


class Watcher:
    """Events of pods, from a watch that stays open."""

    def __init__(self, parts):
        import http.client
        version = json.loads(parts.api("GET", PODS))["metadata"]["resourceVersion"]
        self.connection = http.client.HTTPSConnection("127.0.0.1", parts.port, context=parts.context, timeout=60)
        self.connection.request("GET", f"{PODS}?watch=1&resourceVersion={version}")
        self.response = self.connection.getresponse()

    def until(self, condition):
        while line := self.response.readline():
            event = json.loads(line)
            if event["type"] != "DELETED" and condition(event["object"]):
                return event["object"]
        raise RuntimeError("the watch has ended")

    def until_gone(self, name):
        while line := self.response.readline():
            event = json.loads(line)
            if event["type"] == "DELETED" and event["object"]["metadata"]["name"] == name:
                return
        raise RuntimeError("the watch has ended")

    def close(self):
        self.connection.close()


PODS = "/api/v1/namespaces/default/pods"


def pod(name):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            # The shell may get SIGTERM before its trap is set; limit the wait to a second instead
            # of 30.
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                     "containers": [{"name": "c", "image": "localhost/busybox:latest",
                                     # Exits on SIGTERM, so that the node finally deletes the pod
                                     # object.
                                     "command": ["sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"],
                                     "resources": {"claims": [{"name": "dev"}]}}],
                     "resourceClaims": [{"name": "dev", "resourceClaimTemplateName": "one-device"}]}}


def pss_mb(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"^Pss:\s+(\d+) kB", text, re.M).group(1)) / 1e3


@contextlib.contextmanager
def running(drakkar, devices, *driver_flags, node_alone=False, network="host"):
    """A cluster that is torn down with all its pods. With `node_alone` only the node uses the disk."""
    from parts import wait_until
    with contextlib.ExitStack() as stack:
        memory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm"))) if node_alone else None
        parts = stack.enter_context(start(drakkar, devices, *driver_flags, memory=memory, network=network))
        yield parts
        for each in json.loads(parts.api("GET", PODS))["items"]:
            parts.api("DELETE", f"{PODS}/{each['metadata']['name']}")
        wait_until("no container is left", lambda: not parts.conmons(), 60)


def move_to_memory(parts, memory):
    """Keeps the API server's data (normally on another machine) and CDI specs (in /run) off the node's disk."""
    parts.data = memory / "data"
    parts.kubeconfig = parts.data / "admin.kubeconfig"
    parts.environment["KUBECONFIG"] = str(parts.kubeconfig)
    (memory / "cdi").mkdir()
    parts.node_data.mkdir(exist_ok=True)
    parts.cdi.symlink_to(memory / "cdi")


def start(drakkar, devices, *driver_flags, memory=None, network="host"):
    """API server, controllers, scheduler, node and driver as separate processes, on the build's disk."""
    from parts import Parts, wait_until
    tempfile.tempdir = str(pathlib.Path(drakkar).parents[2])
    parts = Parts(str(drakkar))
    tempfile.tempdir = None
    if memory is not None:
        move_to_memory(parts, memory)
    quiet = "--log-level=warning"
    parts.start_control_plane(quiet)
    parts.start_node(quiet, network=network)
    description = parts.work / "devices.yaml"
    description.write_text(f"count: {devices}\n")
    parts.start("driver", "driver", f"--kubeconfig={parts.kubeconfig}", "--node-name=n1", quiet,
                f"--registry-dir={parts.registry}", f"--plugin-dir={parts.root}/plugins/sim.drakkar.io",
                f"--cdi-dir={parts.cdi}", f"--devices={description}", "--control", *driver_flags,
                stdin=subprocess.PIPE, text=True)
    for manifest in ("class.yaml", "claim-template.yaml"):
        parts.run("apply", "-f", str(ROOT / "examples/hello-device" / manifest))

    def published():
        slices = json.loads(parts.api("GET", "/apis/resource.k8s.io/v1/resourceslices"))["items"]
        return sum(len(s["spec"].get("devices", [])) for s in slices) == devices
    wait_until("devices are published", published, 60)
    return parts


def start_pods(parts, watcher, names):
    times = []
    for name in names:
        begun = time.monotonic()
        parts.api("POST", PODS, pod(name))
        watcher.until(lambda p: p["metadata"]["name"] == name and p.get("status", {}).get("phase") == "Running")
        times.append(time.monotonic() - begun)
    return times


def bench_prepare(drakkar, runs=500):
    figures = []
    for figure, flags in (("prepare.plain.p99", ()), ("prepare.p99", ("--enable-device-metadata",))):
        with running(drakkar, 8, *flags, node_alone=True) as parts:
            parts.api("GET", PODS)
            watcher = Watcher(parts)
            begun, stolen = time.monotonic(), stolen_ms()
            start_and_end_pods(parts, watcher, runs)
            stolen = (stolen_ms() - stolen) / (time.monotonic() - begun)
            text = parts.node_get("metrics")
            watcher.close()
            name = "drakkar_node_dra_operations_duration_seconds"
            labels = ('operation_name="PrepareResources"', 'is_error="false"')
            p99, count = histogram_quantile(text, name, labels, 0.99)
            p50, _ = histogram_quantile(text, name, labels, 0.5)
            stages = {}
            for stage in ("claims", "checkpoint", "driver"):
                of_stage = ("drakkar_node_dra_prepare_stage_duration_seconds", (f'stage="{stage}"',))
                stages[stage] = {f"p{int(100 * share)}_ms": histogram_quantile(text, *of_stage, share)[0] * 1e3
                                 for share in (0.5, 0.99)}
            detail = {"p50_ms": p50 * 1e3, "stages": stages, "count": count, "disk_sync_p99_ms": sync_p99_ms(parts.work),
                      "stolen_ms_per_s": stolen,
                      "what": "the node's prepare of one claim: live claim read over HTTPS, checkpoint synced, driver "
                              "called; " + ("with" if flags else "without") + " metadata, with CDI; the API server's data and CDI "
                              "specs in memory, the node's directory on disk"}
            figures.append((figure, p99 * 1e3, "ms", detail))
    return figures


def start_and_end_pods(parts, watcher, runs):
    times = []
    for i in range(runs):
        times += start_pods(parts, watcher, [f"bench-{i}"])
        parts.api("DELETE", f"{PODS}/bench-{i}")
        watcher.until_gone(f"bench-{i}")
    return times


def has_own_network():
    """Whether the CNI plugins of the built-in bridge network are installed."""
    places = [pathlib.Path("/usr/lib/cni"), pathlib.Path("/opt/cni/bin")]
    return any((place / "bridge").exists() for place in places)


def bench_pod_starts(drakkar, runs=200):
    """Like prepare, but with everything on disk. With CNI plugins, each pod has its own network."""
    figures = pod_starts(drakkar, runs, "host", "pod.start")
    if has_own_network():
        figures += pod_starts(drakkar, runs, "auto", "pod.start.network")
    else:
        print("bench: no CNI plugins, so pods share the host's network", file=sys.stderr)
    return figures


def pod_starts(drakkar, runs, network, figure):
    with running(drakkar, 8, network=network) as parts:
        parts.api("GET", PODS)
        watcher = Watcher(parts)
        times = start_and_end_pods(parts, watcher, runs)
        watcher.close()
        what = {"runs": len(times), "slowest_s": max(times), "disk_sync_p99_ms": sync_p99_ms(parts.work),
                "what": "POST of a pod with a claim to the watch event Running, one process per component, " +
                        ("a network namespace for each pod" if network == "auto" else "on the host's network")}
        return [(f"{figure}.p50", statistics.median(times), "s", what),
                (f"{figure}.p99", percentile(times, 0.99), "s", dict(what))]


def bench_burst(drakkar, pods=110):
    """As many pods as a node takes, created at once: until all run, and the agent's memory with them."""
    with running(drakkar, pods, network="auto" if has_own_network() else "host") as parts:
        parts.api("GET", PODS)
        watcher = Watcher(parts)
        waiting = {f"bench-{i}" for i in range(pods)}
        begun = time.monotonic()
        for name in sorted(waiting):
            parts.api("POST", PODS, pod(name))
        created = time.monotonic() - begun

        def all_run(each):
            if each.get("status", {}).get("phase") == "Running":
                waiting.discard(each["metadata"]["name"])
            return not waiting
        watcher.until(all_run)
        took = time.monotonic() - begun
        watcher.close()
        time.sleep(2)
        memory = pss_mb(parts.processes["node"].pid)
        return [("pod.burst", took, "s", {"pods": pods, "created_s": created, "own_network": has_own_network(),
                                          "what": "from the first POST until all pods run on one node"}),
                ("node.mem.full", memory, "MB", {"pods": pods, "what": "the agent's Pss with these pods running"})]


def bench_health(drakkar, devices=10_000, pods=20, flips=300):
    """From a health change in the driver to its watch event; ten thousand devices on the node, twenty pods."""
    with running(drakkar, devices) as parts:
        parts.api("GET", PODS)
        watcher = Watcher(parts)
        names = [f"bench-{i}" for i in range(pods)]
        start_pods(parts, watcher, names)
        claims = json.loads(parts.api("GET", "/apis/resource.k8s.io/v1/resourceclaims"))["items"]
        held = {c["status"]["reservedFor"][0]["name"]: c["status"]["allocation"]["devices"]["results"][0]["device"]
                for c in claims}
        watcher.close()
        time.sleep(2)
        watcher = Watcher(parts)
        times = []
        for i in range(flips):
            name = names[i % pods]
            state = "Unhealthy" if i // pods % 2 == 0 else "Healthy"
            time.sleep(0.07)  # the SDK allows 20 reports per second
            begun = time.monotonic()
            parts.processes["driver"].stdin.write(f"health {held[name]} {state} run-{i}\n")
            parts.processes["driver"].stdin.flush()

            def shown(p):
                rows = p["status"].get("containerStatuses", [{}])[0].get("allocatedResourcesStatus", [])
                return p["metadata"]["name"] == name and any(
                    r["health"] == state and r.get("message") == f"run-{i}" for row in rows for r in row["resources"])
            watcher.until(shown)
            times.append((time.monotonic() - begun) * 1e3)
        watcher.close()
        detail = {"p50_ms": statistics.median(times), "max_ms": max(times), "flips": flips, "devices": devices,
                  "disk_sync_p99_ms": sync_p99_ms(parts.work),
                  "what": "from a command to the driver to the watch event of the pod's status"}
        return [("health.p99", percentile(times, 0.99), "ms", detail)]


def bench_memory(drakkar, pods=40):
    with running(drakkar, 64) as parts:
        parts.api("GET", PODS)
        watcher = Watcher(parts)
        node = parts.processes["node"].pid
        start_pods(parts, watcher, ["warm-0", "warm-1"])
        time.sleep(1)
        before = pss_mb(node)
        start_pods(parts, watcher, [f"bench-{i}" for i in range(pods)])
        time.sleep(1)
        after = pss_mb(node)
        monitors = parts.conmons()
        conmon = statistics.mean(pss_mb(pid) for pid in monitors)
        watcher.close()
        return [("node.mem.pod", (after - before) / pods * 1e3, "kB",
                 {"agent_idle_mb": before, "agent_with_pods_mb": after, "pods": pods, "conmon_each_mb": conmon,
                  "what": "growth of the agent's Pss per running pod, without its monitor process"})]


def bench_node(drakkar):
    return (bench_prepare(drakkar) + bench_pod_starts(drakkar) + bench_burst(drakkar) + bench_health(drakkar) +
            bench_memory(drakkar))
