#!/usr/bin/env python3
"""Measures and prints a table; --json writes {id, value, unit, commit, detail} per figure.

usage: bench.py [ID, prefix or group ...] [--json FILE] [--runs N]
       bench.py --build-only

Measures the release build. It only prints: timings are never assertions.
docs/benchmarks.md describes each figure.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time

import bench_etcd
import bench_node

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/release"
DRAKKAR = BUILD / "cmd/drakkar/drakkar"
LOAD = BUILD / "bench/load/drakkar-load"


PROFILED = ("drakkar", "drakkar-load")
# The workloads that train the profile: those of the table, shortened.
TRAINING = (("api.create", "--count=4000"), ("api.get", "--count=20000"), ("api.list500", "--count=200"),
            ("api.watch1000", "--watchers=100", "--count=100"), ("sched.burst500",),
            ("sched.empty500", "--milliseconds=3000"), ("sched.full500", "--milliseconds=3000"),
            ("sched.selector500", "--milliseconds=1500"), ("sched.match500", "--milliseconds=1500"),
            ("binding.p99_1000", "--pods=200", "--flips=100"))
# Pods that train node and driver, with and without metadata.
TRAINING_PODS = 40


def compile_release(*targets):
    environment = dict(os.environ, DRAKKAR_PRESET="release")
    subprocess.run(["./dev", "build", *targets], cwd=ROOT, env=environment, check=True,
                   stdout=sys.stderr)


def configure_release(profile):
    subprocess.run(["cmake", "--preset", "release", f"-DDRAKKAR_PROFILE={profile}"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)


def build(*targets):
    """Builds the release binaries with their own profile: build, run for a minute, build again. The profile stays in
    the build directory for later builds; code that changed since is optimised without it. With DRAKKAR_PROFILE=off in
    the environment they are built without a profile, in half the time."""
    mark = BUILD / "profile.trained"
    if os.environ.get("DRAKKAR_PROFILE") == "off":
        configure_release("")
        mark.unlink(missing_ok=True)
    elif not mark.exists() and set(PROFILED) & set(targets):
        print("bench: building with instrumentation (once per build directory)", file=sys.stderr)
        configure_release("generate")
        compile_release(*PROFILED)
        for profile in BUILD.rglob("*.gcda"):
            profile.unlink()
        for scenario, *settings in TRAINING:
            print(f"bench: training with {scenario}", file=sys.stderr)
            load(scenario, *settings, runs=1)
        print("bench: training with prepare", file=sys.stderr)
        try:
            bench_node.bench_prepare(DRAKKAR, runs=TRAINING_PODS)
        except Exception as why:  # containers need root; without them node and driver are not optimised by profile
            print(f"bench: node and driver are not trained: {why}", file=sys.stderr)
        print("bench: building with the profile", file=sys.stderr)
        configure_release("use")
        mark.write_text("")
    compile_release(*targets)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def file_system_of(path):
    return subprocess.run(["stat", "-f", "-c", "%T", str(path)], capture_output=True, text=True,
                          check=False).stdout.strip()


class Up:
    """`drakkar up` on an empty directory of the build's disk, without a node unless asked for."""

    command = "up"

    def __init__(self, *flags):
        if self.command == "up":
            # The nodes of the scenarios send no heartbeats.
            flags = (f"--node-port={free_port()}", "--controllers=*,-node-lifecycle-controller", *flags)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bench-", dir=BUILD))
        self.data = self.directory / "data"
        self.port = free_port()
        self.log = open(self.directory / "log", "w")
        self.begun = time.monotonic()
        self.process = subprocess.Popen(
            [DRAKKAR, self.command, f"--data-dir={self.data}", f"--port={self.port}",
             "--log-level=warning", *flags],
            stdout=self.log, stderr=self.log)
        self.ready_seconds = self._wait_ready()
        self.environment = dict(os.environ, KUBECONFIG=str(self.data / "admin.kubeconfig"))

    def _wait_ready(self):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        while time.monotonic() - self.begun < 60:
            if self.process.poll() is not None:
                raise RuntimeError("drakkar up exited: " + (self.directory / "log").read_text())
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=5) as plain:
                    with context.wrap_socket(plain) as s:
                        s.sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                        if s.recv(64).startswith(b"HTTP/1.1 200"):
                            return time.monotonic() - self.begun
            except OSError:
                pass
            time.sleep(0.002)
        raise RuntimeError("not ready after a minute")

    def pids(self):
        return [self.process.pid]

    def run(self, *arguments, stdin=None):
        return subprocess.run([DRAKKAR, *arguments], env=self.environment, input=stdin,
                              capture_output=True, text=True, check=True).stdout

    def pss_bytes(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return int(re.search(r"^Pss:\s+(\d+) kB", text, re.M).group(1)) * 1024

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        if (self.data / "network").exists():
            subprocess.run([DRAKKAR, "down", f"--data-dir={self.data}"], stdout=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.directory, ignore_errors=True)


class Split(Up):
    """API server, controllers and scheduler as three processes, over HTTPS."""

    command = "apiserver"

    def __init__(self):
        super().__init__()
        self.parts = [
            subprocess.Popen([DRAKKAR, part, f"--kubeconfig={self.data / 'admin.kubeconfig'}",
                              "--log-level=warning"], stdout=self.log, stderr=self.log)
            for part in ("controllers", "scheduler")]

    def pids(self):
        return [self.process.pid] + [part.pid for part in self.parts]

    def __exit__(self, *exception):
        for part in self.parts:
            part.send_signal(signal.SIGTERM)
        for part in self.parts:
            try:
                part.wait(timeout=10)
            except subprocess.TimeoutExpired:
                part.kill()
                part.wait()
        super().__exit__(*exception)


def load(scenario, *settings, server=lambda: Up("--node=false"), runs=None, rename=lambda i: i):
    """The best of several runs of a drakkar-load scenario, each on a new server."""
    best = {}
    for _ in range(runs or RUNS):
        with server() as up:
            output = subprocess.run(
                [LOAD, scenario, f"--kubeconfig={up.data / 'admin.kubeconfig'}",
                 "--pids=" + ",".join(map(str, up.pids())), *settings, *SETTINGS],
                capture_output=True, text=True, check=False)
            if output.returncode != 0:
                raise RuntimeError(output.stderr.strip() + "\n" + (up.directory / "log").read_text()[-2000:])
        for figure in json.loads(output.stdout):
            higher_is_better = figure["unit"].endswith("/s")
            old = best.get(figure["id"])
            values = (old["detail"]["runs"] if old else []) + [figure["value"]]
            if old is None or (figure["value"] > old["value"]) == higher_is_better:
                best[figure["id"]] = figure
            best[figure["id"]]["detail"]["runs"] = values
    for figure in best.values():
        figure["detail"]["load_average"] = os.getloadavg()[0]
    return [(rename(f["id"]), f["value"], f["unit"], f["detail"]) for f in best.values()]


def bench_binding_memory():
    """The cost of waiting: the growth per waiting pod minus that of the same pods without waiting."""
    waiting = load("binding.memory", runs=1)[0]
    bound = load("binding.memory", "--conditions=0", runs=1)[0]
    return [("binding.memory", waiting[1] - bound[1], "KB",
             {**waiting[3], "waiting_pod": waiting[1], "bound_pod": bound[1]})]


def bench_up_ready():
    times = []
    for _ in range(7):
        with Up() as up:
            times.append(up.ready_seconds)
    return [("up.ready", statistics.median(times), "s",
             {"runs": times, "what": "exec to the first 200 from /readyz, empty directory, with node"})]


def bench_mem_idle():
    with Up() as up:
        time.sleep(30)
        value = up.pss_bytes() / 1e6
    return [("mem.idle", value, "MB", {"what": "Pss of up 30 s after ready, without driver and conmon"})]


def bench_pod_start():
    """Creation to Running, observed by a watch that is already open."""
    times = []
    with Up() as up:
        rootfs = up.directory / "busybox.tar.gz"
        subprocess.run(["tools/make_busybox_rootfs.sh", rootfs], cwd=ROOT, check=True)
        up.run("image", "import", f"--data-dir={up.data}", "--name=localhost/busybox:latest", str(rootfs))
        for manifest in ("class.yaml", "claim-template.yaml"):
            up.run("apply", "-f", str(ROOT / "examples/hello-device" / manifest))
        while not up.run("get", "resourceslices", "-o", "name").strip():
            time.sleep(0.05)
        api = Api(up)
        for i in range(20):
            name = f"bench-{i}"
            version = api.get("/api/v1/namespaces/default/pods")["metadata"]["resourceVersion"]
            watch = api.watch(f"/api/v1/namespaces/default/pods?watch=1&resourceVersion={version}")
            begun = time.monotonic()
            api.post("/api/v1/namespaces/default/pods", pod_json(name))
            for event in watch:
                pod = event["object"]
                if pod["metadata"]["name"] == name and pod.get("status", {}).get("phase") == "Running":
                    times.append(time.monotonic() - begun)
                    break
            watch.close()
            up.run("delete", "pod", name)
    return [("pod.start", statistics.median(times), "s",
             {"runs": times, "what": "POST of a pod with a claim to the watch event with Running"})]


def pod_json(name):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
                     "containers": [{"name": "c", "image": "localhost/busybox:latest",
                                     "command": ["sleep", "1000"],
                                     "resources": {"claims": [{"name": "dev"}]}}],
                     "resourceClaims": [{"name": "dev", "resourceClaimTemplateName": "one-device"}]}}


class Api:
    """A minimal HTTPS client with the administrator's certificate."""

    def __init__(self, up):
        import base64
        text = (up.data / "admin.kubeconfig").read_text()

        def data(field):
            return base64.b64decode(re.search(rf"{field}: (\S+)", text).group(1))
        certificate = up.directory / "admin.pem"
        certificate.write_bytes(data("client-certificate-data") + data("client-key-data"))
        self.context = ssl.create_default_context(cadata=data("certificate-authority-data").decode())
        self.context.load_cert_chain(certificate)
        self.port = up.port

    def _connect(self):
        import http.client
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=60)

    def _call(self, method, path, body=None):
        connection = self._connect()
        connection.request(method, path, json.dumps(body) if body is not None else None,
                           {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        connection.close()
        if answer.get("kind") == "Status" and answer.get("status") == "Failure":
            raise RuntimeError(answer["message"])
        return answer

    def get(self, path):
        return self._call("GET", path)

    def post(self, path, body):
        return self._call("POST", path, body)

    def watch(self, path):
        connection = self._connect()
        connection.request("GET", path)
        response = connection.getresponse()

        def events():
            try:
                while line := response.readline():
                    yield json.loads(line)
            finally:
                connection.close()
        return events()


def google_benchmark(binary, ids):
    """Runs a Google Benchmark binary; benchmarks named like ids become figures in the ids' units."""
    path = next((p for p in BUILD.rglob(binary) if p.is_file()), None)
    if path is None:
        return []
    output = subprocess.run([path, "--benchmark_format=json"], capture_output=True, text=True,
                            cwd=ROOT, check=True).stdout
    factor = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    figures = []
    for each in json.loads(output)["benchmarks"]:
        # A captured benchmark is named "Function/id".
        name, unit = next(((n, u) for n in (each["name"], each["name"].partition("/")[2])
                           for prefix, u in ids.items() if n.startswith(prefix)), (None, None))
        if unit is None:
            continue
        nanoseconds = each["cpu_time"] * factor[each["time_unit"]]
        figures.append((name, nanoseconds / factor[unit], unit,
                        {"wall": each["real_time"] * factor[each["time_unit"]] / factor[unit],
                         "iterations": each["iterations"]}))
    return figures


def bench_answers():
    """`drakkar free`, `who` and `why` on 5,000 nodes, 50,000 devices and 20,000 claims, read over HTTP from a server that
    only serves these lists; the wall time of the whole command."""
    sys.path.insert(0, str(ROOT / "tests/e2e"))
    from hollow_api import HollowApi, GROUP  # pylint: disable=import-outside-toplevel
    directory = pathlib.Path(tempfile.mkdtemp(prefix="bench-", dir=BUILD))
    api = HollowApi(5000, 10, sizes=(1, 1, 2, 2), waiting=10)
    figures = []
    try:
        api.write_kubeconfig(directory / "kubeconfig")
        counts = {name: api.count(path) for name, path in (
            ("nodes", "/api/v1/nodes"), ("slices", GROUP + "/resourceslices"), ("claims", GROUP + "/resourceclaims"))}
        for name, words in (("free", ["free"]), ("who", ["who", "--by", "node"]),
                            ("why", ["why", "pod", "waiting", "-n", "team"])):
            walls, cpus = [], []
            for _ in range(3):
                before = os.times()
                start = time.monotonic()
                done = subprocess.run([DRAKKAR, *words, f"--kubeconfig={directory}/kubeconfig"], capture_output=True,
                                      text=True, check=False)
                walls.append(time.monotonic() - start)
                after = os.times()
                cpus.append(after.children_user + after.children_system - before.children_user - before.children_system)
                assert done.returncode in (0, 1) and done.stdout, done.stderr
            figures.append((f"answers.{name}", min(walls), "s", {"cpu": min(cpus), "runs": walls, **counts}))
    finally:
        api.close()
        shutil.rmtree(directory, ignore_errors=True)
    return figures


def bench_metadata():
    """What device metadata adds to a prepare (KEP-5304), for 1 to 128 devices in the request."""
    path = next(p for p in BUILD.rglob("metadata_latency") if p.is_file())
    directory = tempfile.mkdtemp(prefix="bench-", dir=BUILD)
    try:
        output = subprocess.run([path, directory], capture_output=True, text=True, check=True).stdout
        file_system = file_system_of(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    lines = [json.loads(line) for line in output.splitlines()]
    disk = next(line for line in lines if line["operation"] == "disk_sync")
    calls = {}
    for line in lines:
        if line is disk:
            continue
        detail = {"devices": line["devices"], "file_system": file_system, "disk_sync_p99_ms": disk["p99_us"] / 1000}
        operation = line["operation"]
        if operation == "call":
            calls[line["devices"], line["metadata"]] = line
            operation = "call" if line["metadata"] else "call.off"
        else:
            detail["syncs"] = line["syncs"]
        for percentile in ("p50", "p99"):
            yield (f"metadata.{operation}.{percentile}_{line['devices']}", line[f"{percentile}_us"] / 1000, "ms", detail)
    for devices in sorted({key[0] for key in calls}):
        for percentile in ("p50", "p99"):
            field = f"{percentile}_us"
            yield (f"metadata.added.{percentile}_{devices}",
                   (calls[devices, True][field] - calls[devices, False][field]) / 1000, "ms",
                   {"devices": devices, "what": "a node's prepare call with metadata minus one without"})
    for percentile in ("p50", "p99"):
        yield (f"metadata.disk_sync.{percentile}", disk[f"{percentile}_us"] / 1000, "ms", {"file_system": file_system})


def bench_features():
    """Nanoseconds per node by number of registered features, and throughput with the plugin on and off."""
    figures = []
    for binary in ("features_bench", "scheduler_features_bench"):
        path = next(p for p in BUILD.rglob(binary) if p.is_file())
        output = subprocess.run([path, "--benchmark_format=json"], capture_output=True, text=True,
                                cwd=ROOT, check=True).stdout
        for each in json.loads(output)["benchmarks"]:
            name = each["name"].split("/iterations")[0].replace("/", "_")
            if "per_node" in each:
                figures.append((name, each["per_node"] * 1e9, "ns",
                                {"what": "per node; the name contains registered features, nodes and, for an attempt, the "
                                         "maximum number of different declarations"}))
            if "overhead_percent" in each:
                figures.append((name, each["overhead_percent"], "%",
                                {"off_pods_per_s": each["off_pods_per_s"],
                                 "on_pods_per_s": each["on_pods_per_s"],
                                 "what": "CPU that the plugin adds to scheduling a pod through the API, "
                                         "median over 41 pairs of runs"}))
    return figures


def bench_on_etcd():
    """Every figure of the group, or those that the command line names in full."""
    named = [w for w in WANTED if w.startswith("etcd.")]
    bench = bench_etcd.Bench(BUILD, DRAKKAR, LOAD, RUNS, SETTINGS)
    return bench.figures(lambda name: not named or any(name.startswith(w) for w in named))


# One entry per figure or family: what to build, and a function that returns (id, value, unit,
# detail).
BENCHES = {
    "metadata": (["metadata_latency"], bench_metadata),
    "up.ready": (["drakkar"], bench_up_ready),
    "mem.idle": (["drakkar"], bench_mem_idle),
    "pod.start": (["drakkar"], lambda: bench_pod_start() + bench_node.bench_pod_starts(DRAKKAR)),
    "prepare": (["drakkar"], lambda: bench_node.bench_prepare(DRAKKAR)),
    "health": (["drakkar"], lambda: bench_node.bench_health(DRAKKAR)),
    "node.mem": (["drakkar"], lambda: bench_node.bench_memory(DRAKKAR)),
    "pod.burst": (["drakkar"], lambda: bench_node.bench_burst(DRAKKAR)),
    "cel": (["device_cel_bench"], lambda: google_benchmark("device_cel_bench", {"cel.": "ns"})),
    "features": (["features_bench", "scheduler_features_bench"], bench_features),
    "answers": (["drakkar"], bench_answers),
    "alloc": (["allocator_bench"], lambda: google_benchmark("allocator_bench", {"alloc.": "us"})),
}

LOADED = ["drakkar", "drakkar-load"]
BENCHES["etcd"] = (LOADED, bench_on_etcd)
for scenario in ("api.create", "api.get", "api.list500", "api.watch1000", "api.mem100k"):
    BENCHES[scenario] = (LOADED, lambda s=scenario: load(s, runs=1 if s == "api.mem100k" else None))
for scenario in ("api.create", "api.get"):
    BENCHES[scenario + ".http1"] = (LOADED, lambda s=scenario: load(s, "--http1=1",
                                                                    rename=lambda i: i + ".http1"))
for workload in ("burst500", "empty500", "half500", "full500", "selector500", "match500", "burst5000",
                 "shared500", "partition500", "backtrack500", "capacity500", "taints500",
                 "prioritized500", "publish500", "publish5000"):
    BENCHES["sched." + workload] = (LOADED, lambda w=workload: load("sched." + w))
for workload in ("burst500", "empty500"):
    BENCHES["sched.split." + workload] = (LOADED, lambda w=workload: load(
        "sched." + w, server=Split, rename=lambda i: i.replace("sched.", "sched.split.")))
for scenario in ("p99_1000", "p99_10000", "p99_10000_5000nodes"):
    BENCHES["binding." + scenario] = (LOADED, lambda s=scenario: load("binding." + s, runs=1))
BENCHES["binding.memory"] = (LOADED, bench_binding_memory)

# Groups for "./dev bench scheduler" and so on.
GROUPS = {"allocator": ["alloc"], "scheduler": ["sched."], "api": ["api."], "binding": ["binding."],
          "node": ["prepare", "health", "node.mem", "pod.start", "pod.burst"]}
RUNS = 3
# Settings for drakkar-load from the command line: --nodes=50000 --pods=150000
SETTINGS = []
WANTED = []


def is_wanted(name, wanted):
    """An id selects itself, a prefix everything that starts with it; a family is selected as a whole."""
    if wanted in BENCHES:
        return name == wanted
    return name.startswith(wanted) or wanted.startswith(name + ".")


def main():
    global RUNS
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--json")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--build-only", action="store_true")
    options, SETTINGS[:] = parser.parse_known_args()
    for setting in SETTINGS:
        if not re.fullmatch(r"--[a-z_]+=\S+", setting):
            print(f"unknown option {setting}; settings of the load generator are written --name=value",
                  file=sys.stderr)
            return 2
    if options.build_only:
        build(*PROFILED)
        return 0
    RUNS = options.runs
    wanted = [prefix for i in options.ids for prefix in GROUPS.get(i, [i])]
    WANTED[:] = wanted
    chosen = {name: bench for name, bench in BENCHES.items()
              if not wanted or any(is_wanted(name, w) for w in wanted)}
    if not chosen:
        print(f"unknown id; known are: {', '.join(BENCHES)}; "
              f"groups: {', '.join(GROUPS)}", file=sys.stderr)
        return 1
    build(*sorted({t for targets, _ in chosen.values() for t in targets}))
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True,
                            text=True, check=False).stdout.strip()
    results = []
    for name, (_, bench) in chosen.items():
        print(f"measuring {name} ...", file=sys.stderr)
        for figure_id, value, unit, detail in bench():
            detail.setdefault("file_system", file_system_of(BUILD))
            results.append({"id": figure_id, "value": value, "unit": unit, "commit": commit,
                            "detail": detail})
            beside = f"  Kubernetes {detail['kubernetes']:.4g}, ratio {detail['ratio']:.1f}" if "ratio" in detail else ""
            print(f"{figure_id:32} {value:12.4g} {unit}{beside}", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
