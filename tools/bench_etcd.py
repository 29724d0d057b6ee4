"""./dev bench etcd: Drakkar and Kubernetes' own servers on the same etcd, with one member and with three, in alternation."""
import base64
import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import ssl
import statistics
import subprocess
import tempfile
import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection

ROOT = pathlib.Path(__file__).resolve().parents[1]
PEERS = ROOT / "build/peers/interop/kube"
LEASE_SECONDS = 15  # the default of both schedulers
OBJECTS = 100_000
EVENTS = 500


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def openssl(folder, *arguments):
    subprocess.run(["openssl", *map(str, arguments)], cwd=folder, check=True, capture_output=True)


class Processes:
    """Programs in one directory of the build's disk, which are ended and removed together."""

    def __init__(self, build):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bench-etcd-", dir=build))
        self.running = []

    def start(self, name, *command):
        with open(self.directory / f"{name}.log", "ab") as log:
            process = subprocess.Popen([str(c) for c in command], stdout=log, stderr=log, cwd=self.directory)
        process.name = name
        self.running.append(process)
        return process

    def text(self, name):
        return (self.directory / f"{name}.log").read_text(errors="replace")

    def stop(self, process, how=signal.SIGTERM):
        self.running.remove(process)
        if process.poll() is None:
            process.send_signal(how)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(list(self.running)):
            self.stop(process)
        shutil.rmtree(self.directory, ignore_errors=True)


def wait_until(what, condition, seconds=120, pause=0.05):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(pause)
    raise RuntimeError(f"did not happen within {seconds} s: {what}")


def start_etcd(processes, members):
    """Returns the URLs of the members. They sync to disk, as in production."""
    ports = [(free_port(), free_port()) for _ in range(members)]
    cluster = ",".join(f"e{n}=http://127.0.0.1:{peer}" for n, (_, peer) in enumerate(ports))
    for n, (client, peer) in enumerate(ports):
        processes.start(f"etcd-{n}", os.environ.get("DRAKKAR_ETCD") or shutil.which("etcd"), f"--name=e{n}",
                        f"--data-dir={processes.directory}/etcd-{n}", f"--listen-client-urls=http://127.0.0.1:{client}",
                        f"--advertise-client-urls=http://127.0.0.1:{client}", f"--listen-peer-urls=http://127.0.0.1:{peer}",
                        f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}", f"--initial-cluster={cluster}",
                        f"--quota-backend-bytes={4 << 30}")
    for client, _ in ports:
        wait_until("etcd is healthy", lambda client=client: is_healthy(client))
    return [f"http://127.0.0.1:{client}" for client, _ in ports]


def is_healthy(port):
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


class Server:
    """An API server and a connection to it as the administrator."""

    def __init__(self, processes, port, kubeconfig):
        self.processes, self.port, self.kubeconfig = processes, port, kubeconfig
        self.context = None
        self.begun = time.monotonic()
        self.process = None

    def is_ready(self):
        if self.process.poll() is not None:
            raise RuntimeError(self.processes.text(self.process.name)[-2000:])
        try:
            return self.ask("GET", "/readyz")[0] == 200
        except (OSError, HTTPException):
            return False

    def wait(self):
        """Seconds from its start to its first 200 of /readyz."""
        wait_until(f"{self.process.name} is ready", self.is_ready, 180, 0.005)
        return time.monotonic() - self.begun

    def connect(self):
        if self.context is None:
            text = self.kubeconfig.read_text()
            pem = self.kubeconfig.with_suffix(".pem")
            if "client-certificate-data" not in text:
                raise OSError("not written yet")
            fields = {f: text.split(f"{f}: ", 1)[1].split()[0].strip('",}') for f in (
                "certificate-authority-data", "client-certificate-data", "client-key-data")}
            pem.write_bytes(b"".join(base64.b64decode(fields[f]) for f in ("client-certificate-data", "client-key-data")))
            context = ssl.create_default_context(cadata=base64.b64decode(fields["certificate-authority-data"]).decode())
            context.load_cert_chain(pem)
            self.context = context
        return HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=60)

    def ask(self, method, path, body=None):
        connection = self.connect()
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def api(self, method, path, body=None):
        status, text = self.ask(method, path, body)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {text[:500]!r}")
        return json.loads(text)


class Ours:
    name = "drakkar"

    def __init__(self, drakkar):
        self.drakkar = drakkar

    def server(self, processes, etcd, name="a"):
        data = processes.directory / f"drakkar-{name}"
        server = Server(processes, free_port(), data / "admin.kubeconfig")
        server.process = processes.start(f"drakkar-{name}", self.drakkar, "apiserver", f"--data-dir={data}",
                                         f"--port={server.port}", f"--etcd-servers={','.join(etcd)}", "--log-level=warning")
        return server

    def scheduler(self, processes, server, name="scheduler"):
        return processes.start(name, self.drakkar, "scheduler", f"--kubeconfig={server.kubeconfig}", "--secure-port=0",
                               "--log-level=warning")

    def others(self, processes, server):
        processes.start("controllers", self.drakkar, "controllers", f"--kubeconfig={server.kubeconfig}", "--secure-port=0",
                        "--controllers=*,-node-lifecycle-controller", "--log-level=warning")
        self.scheduler(processes, server)


class Kubernetes:
    """kube-apiserver, kube-scheduler and kube-controller-manager, with the client limits of both raised."""
    name = "kubernetes"

    def certificates(self, folder):
        folder.mkdir(exist_ok=True)
        if (folder / "ca.crt").exists():
            return
        new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        openssl(folder, "req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=ca")
        for name, subject, extension in (("apiserver", "/CN=apiserver", "subjectAltName=IP:127.0.0.1"),
                                         ("admin", "/O=system:masters/CN=admin", "extendedKeyUsage=clientAuth")):
            (folder / "ext").write_text(extension + "\n")
            openssl(folder, "req", *new_key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", subject)
            openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                    "-out", f"{name}.crt", "-days", "2", "-extfile", "ext")
        openssl(folder, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "sa.key")
        openssl(folder, "ec", "-in", "sa.key", "-pubout", "-out", "sa.pub")

    def server(self, processes, etcd, name="a"):
        pki = processes.directory / "kube-pki"
        self.certificates(pki)
        port = free_port()

        def encoded(file):
            return base64.b64encode((pki / file).read_bytes()).decode()
        kubeconfig = processes.directory / f"kube-{name}.kubeconfig"
        kubeconfig.write_text(f"""apiVersion: v1
kind: Config
clusters:
- name: c
  cluster:
    server: https://127.0.0.1:{port}
    certificate-authority-data: {encoded("ca.crt")}
users:
- name: u
  user:
    client-certificate-data: {encoded("admin.crt")}
    client-key-data: {encoded("admin.key")}
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
""")
        server = Server(processes, port, kubeconfig)
        server.process = processes.start(
            f"kube-apiserver-{name}", PEERS / "kube-apiserver", f"--etcd-servers={','.join(etcd)}", f"--secure-port={port}",
            "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24", f"--tls-cert-file={pki}/apiserver.crt",
            f"--tls-private-key-file={pki}/apiserver.key", f"--client-ca-file={pki}/ca.crt", "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-signing-key-file={pki}/sa.key",
            f"--service-account-key-file={pki}/sa.pub", "--max-requests-inflight=3000",
            "--max-mutating-requests-inflight=1000",
            # The scenarios' nodes send no heartbeats, and their pods have no account.
            "--disable-admission-plugins=TaintNodesByCondition,ServiceAccount")
        return server

    def scheduler(self, processes, server, name="kube-scheduler"):
        return processes.start(name, PEERS / "kube-scheduler", f"--kubeconfig={server.kubeconfig}",
                               f"--authentication-kubeconfig={server.kubeconfig}",
                               f"--authorization-kubeconfig={server.kubeconfig}", "--bind-address=127.0.0.1",
                               f"--secure-port={free_port()}", f"--cert-dir={processes.directory}/{name}",
                               "--kube-api-qps=5000", "--kube-api-burst=5000")

    def others(self, processes, server):
        processes.start("kube-controller-manager", PEERS / "kube-controller-manager", f"--kubeconfig={server.kubeconfig}",
                        "--bind-address=127.0.0.1", f"--secure-port={free_port()}",
                        f"--cert-dir={processes.directory}/kcm", "--controllers=resourceclaim-controller,namespace-controller",
                        "--kube-api-qps=5000", "--kube-api-burst=5000")
        self.scheduler(processes, server)


class Bench:
    def __init__(self, build, drakkar, load, runs, settings):
        self.build, self.load, self.runs = build, load, runs
        self.settings = settings
        # --objects and --events are ours; the rest is for the load generator.
        self.objects = int(next((s.split("=")[1] for s in settings if s.startswith("--objects=")), OBJECTS))
        self.events = int(next((s.split("=")[1] for s in settings if s.startswith("--events=")), EVENTS))
        self.passed_on = [s for s in settings if not s.startswith(("--objects=", "--events="))]
        self.ours = Ours(drakkar)
        self.sides = [self.ours, Kubernetes()] if (PEERS / "kube-apiserver").exists() else [self.ours]

    def run_load(self, server, scenario, *settings):
        done = subprocess.run([self.load, scenario, f"--kubeconfig={server.kubeconfig}", f"--pids={server.process.pid}",
                               *settings, *self.passed_on], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip() + "\n" + server.processes.text(server.process.name)[-2000:])
        return next(f for f in json.loads(done.stdout) if f["id"] == scenario)

    def compare(self, scenario, members, *settings):
        """The best run of each side, on a new etcd each time, in alternation."""
        values = {side.name: [] for side in self.sides}
        unit = ""
        for _ in range(self.runs):
            for side in self.sides:
                with Processes(self.build) as processes:
                    server = side.server(processes, start_etcd(processes, members))
                    server.wait()
                    if scenario.startswith("sched."):
                        side.others(processes, server)
                    figure = self.run_load(server, scenario, *settings)
                    values[side.name].append(figure["value"])
                    unit = figure["unit"]
        best = {name: max(each) for name, each in values.items()}
        detail = {"runs": values["drakkar"], "members": members, "load_average": os.getloadavg()[0]}
        if "kubernetes" in best:
            detail.update(kubernetes=best["kubernetes"], kubernetes_runs=values["kubernetes"],
                          ratio=best["drakkar"] / best["kubernetes"])
        return (f"etcd.{scenario}.{members}", best["drakkar"], unit, detail)

    def watch(self):
        """From the answer of a write at one server to the event at another."""
        with Processes(self.build) as processes:
            etcd = start_etcd(processes, 3)
            a, b = self.ours.server(processes, etcd, "a"), self.ours.server(processes, etcd, "b")
            a.wait(), b.wait()
            maps = "/api/v1/namespaces/default/configmaps"
            version = b.api("GET", maps)["metadata"]["resourceVersion"]
            connection = b.connect()
            connection.request("GET", f"{maps}?watch=1&resourceVersion={version}")
            stream = connection.getresponse()
            seen, sent = {}, {}

            def follow():
                while len(seen) < self.events:
                    event = json.loads(stream.readline())
                    name = event["object"]["metadata"]["name"]
                    if name.startswith("event-"):
                        seen[name] = time.monotonic()
            writer = a.connect()
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                following = pool.submit(follow)
                for n in range(self.events):
                    writer.request("POST", maps, json.dumps({"apiVersion": "v1", "kind": "ConfigMap",
                                                             "metadata": {"name": f"event-{n}"}}),
                                   {"Content-Type": "application/json"})
                    answer = writer.getresponse()
                    answer.read()
                    sent[f"event-{n}"] = time.monotonic()
                    if answer.status != 201:
                        raise RuntimeError(f"status {answer.status}")
                    time.sleep(random.uniform(0, 0.01))
                following.result(timeout=60)
            connection.close(), writer.close()
            delays = sorted(max(0.0, seen[name] - sent[name]) * 1000 for name in sent)
            return ("etcd.watch_other_p99", delays[int(len(delays) * 0.99)], "ms",
                    {"p50": statistics.median(delays), "events": len(delays), "goal": "below 20",
                     "what": "from the answer of a create at one API server to the watch event at another, 3 members"})

    def failover(self):
        """From kill -9 of the scheduler that leads to a pod that the other one bound."""
        values, detail = {}, {"lease": LEASE_SECONDS, "goal": f"within {LEASE_SECONDS + 1}"}
        for side in self.sides:
            with Processes(self.build) as processes:
                server = side.server(processes, start_etcd(processes, 1))
                server.wait()
                size = {"cpu": "64", "memory": "64Gi", "pods": "200"}
                server.api("POST", "/api/v1/nodes", {
                    "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
                    "status": {"allocatable": size, "capacity": size, "conditions": [{"type": "Ready", "status": "True"}]}})
                if side is self.ours:
                    server.ask("POST", "/api/v1/namespaces/default/serviceaccounts", {
                        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})

                def create(name, server=server):
                    server.api("POST", "/api/v1/namespaces/default/pods", {
                        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                        "spec": {"containers": [{"name": "c", "image": "none"}]}})

                def is_bound(name, server=server):
                    return server.api("GET", f"/api/v1/namespaces/default/pods/{name}")["spec"].get("nodeName")
                leader = side.scheduler(processes, server, "scheduler-a")
                create("first")
                wait_until("the first scheduler binds", lambda: is_bound("first"), 60)
                side.scheduler(processes, server, "scheduler-b")
                time.sleep(3)  # the second one has seen the lease
                processes.stop(leader, signal.SIGKILL)
                begun = time.monotonic()
                create("second")
                wait_until("the second scheduler binds", lambda: is_bound("second"), 60, 0.01)
                values[side.name] = time.monotonic() - begun
        if "kubernetes" in values:
            detail.update(kubernetes=values["kubernetes"], ratio=values["kubernetes"] / values["drakkar"])
        return ("etcd.failover", values["drakkar"], "s", detail)

    def start(self):
        """From exec to the first 200 of /readyz, with many claims in etcd."""
        with Processes(self.build) as processes:
            etcd = start_etcd(processes, 1)
            server = self.ours.server(processes, etcd)
            server.wait()
            self.run_load(server, "api.create", f"--count={self.objects}")
            values = {}
            for side in self.sides:
                times = []
                for _ in range(self.runs):
                    processes.stop(server.process)
                    server = side.server(processes, etcd)
                    times.append(server.wait())
                values[side.name] = times
        detail = {"runs": values["drakkar"], "objects": self.objects, "goal": "within 3"}
        if "kubernetes" in values:
            detail.update(kubernetes=min(values["kubernetes"]), kubernetes_runs=values["kubernetes"],
                          ratio=min(values["kubernetes"]) / min(values["drakkar"]))
        return ("etcd.start", min(values["drakkar"]), "s", detail)

    def figures(self, wanted=lambda name: True):
        if not (os.environ.get("DRAKKAR_ETCD") or shutil.which("etcd")):
            raise RuntimeError("needs etcd (Debian package etcd-server)")
        for members in (1, 3):
            for scenario in ("api.create", "api.get", "sched.burst500"):
                if wanted(f"etcd.{scenario}.{members}"):
                    yield self.compare(scenario, members)
        for name, measure in (("etcd.watch_other_p99", self.watch), ("etcd.failover", self.failover),
                              ("etcd.start", self.start)):
            if wanted(name):
                yield measure()
