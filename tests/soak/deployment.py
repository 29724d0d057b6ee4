"""The cluster of `./dev soak cluster`: three control-plane machines (etcd, API server; scheduler and controllers on two of
them) and nodes with the reference driver, each on a machine of its own."""
import base64
import json
import pathlib
import ssl
import subprocess
import time
from http.client import HTTPException, HTTPSConnection

import audit
from machines import NETWORK, Machine, Network, build

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What elections are held with. On a machine that is busy with other things leaders miss the shorter deadlines.
LEASE_SECONDS = 4
FUNCTIONAL_LEASE_SECONDS = 15
ETCD_ELECTION_SECONDS = 1
DRIVER = "sim.drakkar.io"
DEVICES_PER_NODE = 4
PORT = 6443


def issue(pki, folder, name, user, group, address=None):
    """NAME.crt and NAME.key, signed by the cluster's CA."""
    stem = folder / name

    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{stem}.key", "-subj",
            (f"/O={group}" if group else "") + f"/CN={user}", "-out", f"{stem}.csr")
    pathlib.Path(f"{stem}.ext").write_text(
        f"extendedKeyUsage=serverAuth\nsubjectAltName=IP:{address}\n" if address else "extendedKeyUsage=clientAuth\n")
    openssl("x509", "-req", "-in", f"{stem}.csr", "-CA", pki / "ca.crt", "-CAkey", pki / "ca.key", "-set_serial",
            int.from_bytes(name.encode()[-8:], "big"), "-days", "30", "-extfile", f"{stem}.ext", "-out", f"{stem}.crt")
    return stem


def call_works(address):
    try:
        audit.call(address, "kv/range", {"key": audit.encode("x")})
        return True
    except (OSError, ValueError, HTTPException):
        return False


def write_kubeconfig(path, server, ca, stem):
    def encoded(file):
        return base64.b64encode(pathlib.Path(file).read_bytes()).decode()
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": encoded(ca)}}],
        "users": [{"name": "u", "user": {"client-certificate-data": encoded(f"{stem}.crt"),
                                         "client-key-data": encoded(f"{stem}.key")}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}))


class Deployment:
    def __init__(self, drakkar, etcd, work, nodes, functional):
        self.drakkar, self.etcd, self.work = drakkar, etcd, work
        self.lease_seconds = FUNCTIONAL_LEASE_SECONDS if functional else LEASE_SECONDS
        self.while_waiting = lambda: None
        (work / "logs").mkdir()
        self.shim = build(work, "clock_shim", "-shared", "-fPIC", "-O1")
        addresses = {f"m{n}": f"{NETWORK}.{10 + n}" for n in (1, 2, 3)}
        addresses.update({f"n{n}": f"{NETWORK}.{20 + n}" for n in range(1, nodes + 1)})
        self.network = Network(work, addresses)
        machines = [Machine(work, name, self.network, address, 900 if name.startswith("m") else 256)
                    for name, address in addresses.items()]
        self.control, self.nodes = machines[:3], machines[3:]
        self.machines = self.control + self.nodes
        self.context = None

    def servers(self):
        return [machine.address for machine in self.control]

    def urls(self, first):
        """All API servers for a kubeconfig, beginning with this one."""
        order = self.control[first % 3:] + self.control[:first % 3]
        return ",".join(f"https://{machine.address}:{PORT}" for machine in order)

    def processes(self):
        return [p for machine in self.machines for p in machine.processes.values()]

    # Start.

    def start_control_plane(self):
        peers = ",".join(f"{m.name}=http://{m.address}:2380" for m in self.control)
        urls = ",".join(f"http://{m.address}:2379" for m in self.control)
        for m in self.control:
            m.add("etcd", [self.etcd, f"--name={m.name}", f"--data-dir={m.disk}/etcd",
                           f"--listen-client-urls=http://{m.address}:2379", f"--advertise-client-urls=http://{m.address}:2379",
                           f"--listen-peer-urls=http://{m.address}:2380",
                           f"--initial-advertise-peer-urls=http://{m.address}:2380", f"--initial-cluster={peers}",
                           "--heartbeat-interval=100", f"--election-timeout={ETCD_ELECTION_SECONDS * 1000}", "--snapshot-count=20000"]).start()
        self.wait("etcd has a leader", lambda: call_works(self.control[0].address), 120)
        for m in self.control:
            m.add("apiserver", [self.drakkar, "apiserver", f"--data-dir={m.disk}/api", f"--address={m.address}",
                                f"--port={PORT}", f"--etcd-servers={urls}", "--etcd-compaction-interval=60s",
                                "--storage-media-type=application/json"], self.shim).start()
        for m in self.control:
            self.wait(f"the API server of {m.name} is ready", lambda m=m: self.is_ready(m), 120)
        self.pki = self.control[0].disk / "api/pki"
        election = (f"--leader-elect-lease-duration={self.lease_seconds}s",
                    f"--leader-elect-renew-deadline={self.lease_seconds * 3 // 4}s", "--leader-elect-retry-period=500ms")
        for number, m in enumerate(self.control[:2]):
            issue(self.pki, m.disk, f"manager{number}", f"manager{number}", "system:masters")
            write_kubeconfig(m.disk / "kubeconfig", self.urls(number), self.pki / "ca.crt", m.disk / f"manager{number}")
            config = f"--kubeconfig={m.disk}/kubeconfig"
            m.add("controllers", [self.drakkar, "controllers", config, "--secure-port=0", *election], self.shim).start()
            m.add("scheduler", [self.drakkar, "scheduler", config, "--secure-port=0", *election], self.shim).start()

    def start_nodes(self):
        rootfs = self.work / "busybox.tar.gz"
        subprocess.run([ROOT / "tools/make_busybox_rootfs.sh", rootfs], check=True, cwd=ROOT)
        (self.work / "devices.yaml").write_text(f"count: {DEVICES_PER_NODE}\n")
        for number, n in enumerate(self.nodes):
            home = n.disk / "node"
            home.mkdir()
            for name, user, group in (("node", f"system:node:{n.name}", "system:nodes"),
                                      ("driver", f"drakkar:node-driver:{n.name}", "drakkar:node-drivers")):
                write_kubeconfig(home / f"{name}.kubeconfig", self.urls(number), self.pki / "ca.crt",
                                 issue(self.pki, home, name, user, group))
            issue(self.pki, home, "serving", f"system:node:{n.name}", "system:nodes", n.address)
            subprocess.run([self.drakkar, "image", "import", f"--data-dir={home}", "--name=localhost/busybox:latest", rootfs],
                           check=True, capture_output=True)
            n.add("node", [self.drakkar, "node", f"--data-dir={home}", f"--node-name={n.name}", f"--address={n.address}",
                           f"--kubeconfig={home}/node.kubeconfig", "--port=10250", "--pod-network=host",
                           f"--client-ca-file={self.pki}/ca.crt", f"--tls-cert-file={home}/serving.crt",
                           f"--tls-private-key-file={home}/serving.key"], self.shim).start()
            n.add("driver", [self.drakkar, "driver", f"--node-name={n.name}", f"--driver-name={DRIVER}",
                             f"--kubeconfig={home}/driver.kubeconfig", f"--registry-dir={home}/kubelet/plugins_registry",
                             f"--cdi-dir={home}/cdi", f"--devices={self.work}/devices.yaml"], self.shim).start()

    # Requests of the test itself, with the administrator's certificate.

    def is_ready(self, machine):
        assert machine.processes["apiserver"].process.poll() is None, machine.processes["apiserver"].text()[-2000:]
        if not (machine.disk / "api/scheduler.kubeconfig").exists():
            return False
        if self.context is None:
            stem = issue(machine.disk / "api/pki", self.work, "admin", "soak", "system:masters")
            self.context = ssl.create_default_context(cafile=machine.disk / "api/pki/ca.crt")
            self.context.load_cert_chain(f"{stem}.crt", f"{stem}.key")
        return self.ask(machine.address, "GET", "/readyz")[0] == 200

    def connect(self, address, timeout=10, context=None):
        return HTTPSConnection(address, PORT, context=context or self.context, timeout=timeout)

    def context_of_node(self, node):
        """Speaks with the certificate of a node."""
        context = ssl.create_default_context(cafile=self.pki / "ca.crt")
        context.load_cert_chain(node.disk / "node/node.crt", node.disk / "node/node.key")
        return context

    def ask(self, address, method, path, body=None, kind="application/json", timeout=10):
        """Status and document; (None, reason) if there is no answer."""
        connection = self.connect(address, timeout)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": kind})
            answer = connection.getresponse()
            text = answer.read()
            try:
                return answer.status, json.loads(text)
            except ValueError:
                return answer.status, text.decode(errors="replace")
        except (OSError, HTTPException) as why:
            return None, repr(why)
        finally:
            connection.close()

    def api(self, method, path, body=None, kind="application/json", seconds=30):
        """At whichever server answers, until one does."""
        deadline = time.monotonic() + seconds
        while True:
            for address in self.servers():
                status, document = self.ask(address, method, path, body, kind)
                if status is not None and status < 500 and status != 429:
                    return status, document
            assert time.monotonic() < deadline, f"{method} {path}: {status} {document}"
            time.sleep(0.2)

    def wait(self, what, condition, seconds):
        deadline = time.monotonic() + seconds
        while True:
            self.while_waiting()
            value = condition()
            if value:
                return value
            assert time.monotonic() < deadline, f"did not happen within {seconds} s: {what}"
            time.sleep(0.1)

    def stop(self):
        for process in self.processes():
            process.kill()
