#!/usr/bin/env python3
"""Pod networks with the real plugins: pods reach each other, the host and the API server; host ports, probes and names
work; everything survives a kill of the agent and nothing is left behind. Runs in a network namespace of its own."""
import base64
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

from cluster import Cluster, free_port, skip_without_containers, wait_until

PLUGINS = ("/opt/cni/bin", "/usr/lib/cni")
NETNS = pathlib.Path("/run/netns")

SERVER = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: web}}}}
spec:
  hostname: web
  subdomain: site
  terminationGracePeriodSeconds: 0
  containers:
  - name: c
    image: localhost/busybox:latest
    command: [sh, -c, "mkdir -p /www && echo from-{name} > /www/index.html && exec httpd -f -p 80 -h /www"]
    ports: [{{containerPort: 80, hostPort: {host_port}}}]
    readinessProbe: {{httpGet: {{path: /index.html, port: 80}}, periodSeconds: 1}}
    env:
    - {{name: IPS, valueFrom: {{fieldRef: {{fieldPath: status.podIPs}}}}}}
"""

CLIENT = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  terminationGracePeriodSeconds: 0
  {members}
  containers:
  - {{name: c, image: "localhost/busybox:latest", command: [sleep, "10000"]}}
"""

SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: site}
spec:
  selector: {app: web}
  ports: [{name: http, port: 8080, targetPort: 80}]
"""

DUAL_STACK = {
    "cniVersion": "1.0.0", "name": "dual", "plugins": [
        {"type": "ptp", "ipam": {"type": "host-local", "ranges": [
            [{"subnet": "10.123.0.0/24"}], [{"subnet": "fd12:3456::/64"}]]}},
        {"type": "portmap", "capabilities": {"portMappings": True}}]}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def get(url, context=None):
    with urllib.request.urlopen(url, timeout=5, context=context) as answer:
        return answer.read().decode().strip()


def addresses(directory):
    return sorted(p.name for p in directory.glob("*/10.*")) if directory.exists() else []


class NetworkCluster(Cluster):
    network_flags = ()

    def start(self):
        super().start()
        wait_until("the node's port answers", self.node_answers)

    def node_answers(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.ports[1])) == 0


class Machine:
    """What a node may leave on the machine."""

    @staticmethod
    def links():
        return sorted(link["ifname"] for link in json.loads(output("ip", "-j", "link")))

    @staticmethod
    def rules():
        # The plugin portmap keeps its top-level chains, which all its users share.
        text = output("iptables-save")
        return [line for line in text.splitlines() if line.startswith("-A") and "CNI-HOSTPORT" not in line]

    @staticmethod
    def namespaces():
        return sorted(p.name for p in NETNS.glob("drakkar-*")) if NETNS.exists() else []


def pod(cluster, name):
    return cluster.get("pod", name) or {}


def running(cluster, name):
    def ready():
        status = pod(cluster, name).get("status", {})
        conditions = {c["type"]: c["status"] for c in status.get("conditions", [])}
        return status if conditions.get("Ready") == "True" else None
    return wait_until(f"{name} is ready", ready, 60)


def apply(cluster, text):
    cluster.run("apply", "-f", "-", stdin=text)


def execute(cluster, name, *command):
    return cluster.run("exec", name, "--", *command).strip()


def namespace_of(cluster, name):
    """The path of the network namespace of a pod's sandbox."""
    for path in (cluster.data / "network/attachments").glob("*.json"):
        if f"K8S_POD_NAME={name};" in json.loads(path.read_text())["arguments"]:
            return NETNS / f"drakkar-{path.stem}"
    raise AssertionError(f"pod {name} has no network")


def reaches_the_api_server(cluster, name):
    """From inside the pod's network namespace, with the certificate checked against what the pod is told."""
    variables = dict(line.split("=", 1) for line in execute(cluster, name, "env").splitlines() if "=" in line)
    host, port = variables["KUBERNETES_SERVICE_HOST"], variables["KUBERNETES_SERVICE_PORT"]
    service_account = "/var/run/secrets/kubernetes.io/serviceaccount"
    (cluster.work / "ca.crt").write_text(execute(cluster, name, "cat", f"{service_account}/ca.crt") + "\n")
    code = (f"import ssl, urllib.request as u; c = ssl.create_default_context(cafile={str(cluster.work / 'ca.crt')!r});"
            f"print(u.urlopen('https://{host}:{port}/version', context=c, timeout=5).status)")
    answer = output("nsenter", f"--net={namespace_of(cluster, name)}", sys.executable, "-c", code)
    assert answer.strip() == "200", answer


def through_the_api_server(cluster, path):
    """GET with the administrator's certificate."""
    stem, entries = cluster.work / "proxy", (cluster.data / "admin.kubeconfig").read_text()
    for name in ("certificate-authority", "client-certificate", "client-key"):
        encoded = re.search(rf"{name}-data: (\S+)", entries).group(1).strip('"')
        pathlib.Path(f"{stem}-{name}").write_bytes(base64.b64decode(encoded))
    context = ssl.create_default_context(cafile=f"{stem}-certificate-authority")
    context.load_cert_chain(f"{stem}-client-certificate", f"{stem}-client-key")
    try:
        return get(f"https://127.0.0.1:{cluster.ports[0]}/api/v1/namespaces/default/{path}", context)
    except urllib.error.HTTPError as refused:
        return json.loads(refused.read())["message"]


def built_in_network(drakkar):
    before = (Machine.links(), Machine.rules(), Machine.namespaces())
    with NetworkCluster(drakkar) as cluster:
        cluster.start()
        assert Machine.links() == before[0], "without pods nothing happens to the machine"
        port = free_port()
        apply(cluster, SERVER.format(name="server", host_port=port))
        apply(cluster, CLIENT.format(name="client", members=""))
        apply(cluster, CLIENT.format(name="on-host", members="hostNetwork: true"))
        server, client = running(cluster, "server"), running(cluster, "client")
        ip = server["podIP"]
        assert server["podIPs"] == [{"ip": ip}], server
        assert ip != server["hostIP"] and client["podIP"] not in (ip, client["hostIP"]), (server, client)
        on_host = running(cluster, "on-host")
        assert on_host["podIP"] == on_host["hostIP"], on_host

        assert execute(cluster, "client", "wget", "-qO-", f"http://{ip}/") == "from-server"
        assert get(f"http://{ip}/") == "from-server", "from the host"
        assert get(f"http://127.0.0.1:{port}/") == "from-server", "through the host port"
        assert execute(cluster, "server", "sh", "-c", "echo $IPS") == ip
        assert execute(cluster, "server", "hostname") == "web"
        hosts = execute(cluster, "server", "cat", "/etc/hosts")
        assert f"{ip}\tweb.site.default.svc.cluster.local\tweb" in hosts, hosts
        assert "127.0.0.1" in execute(cluster, "client", "ip", "addr", "show", "lo"), "loopback is up"
        reaches_the_api_server(cluster, "client")
        assert through_the_api_server(cluster, "pods/server/proxy/") == "from-server"
        assert through_the_api_server(cluster, "pods/http:server:80/proxy/index.html") == "from-server"
        apply(cluster, SERVICE)
        wait_until("the service leads to its pod",
                   lambda: through_the_api_server(cluster, "services/site:http/proxy/") == "from-server")
        refused = through_the_api_server(cluster, f"pods/on-host:{cluster.ports[1]}/proxy/metrics")
        assert refused.startswith("address not allowed"), refused

        # The agent is killed: pods keep their network, and a deletion afterwards removes it.
        cluster.kill()
        assert get(f"http://{ip}/") == "from-server", "while no agent runs"
        cluster.start()
        again = running(cluster, "server")
        assert again["podIP"] == ip and again["containerStatuses"][0]["restartCount"] == 0, again
        assert execute(cluster, "client", "wget", "-qO-", f"http://{ip}/") == "from-server"
        reaches_the_api_server(cluster, "client")

        # A namespace is lost behind the agent's back: the pod gets a new sandbox with a new network.
        cluster.kill()
        output("umount", str(namespace_of(cluster, "server")))
        cluster.start()
        def replaced():
            status = running(cluster, "server")
            return status if status["podIP"] != ip else None
        ip = wait_until("the pod has a new address", replaced, 60)["podIP"]
        assert execute(cluster, "client", "wget", "-qO-", f"http://{ip}/") == "from-server"
        assert get(f"http://127.0.0.1:{port}/") == "from-server", "the host port leads to the new sandbox"

        network = cluster.data / "network"
        assert len(addresses(network / "addresses")) == 2, addresses(network / "addresses")
        cluster.run("delete", "pod", "server", "client", "on-host")
        wait_until("the pods are gone", lambda: not cluster.list("pods"), 60)
        # Without a grace period the objects are deleted at once; the node follows.
        wait_until("no attachment is left", lambda: not list((network / "attachments").glob("*.json")))
        wait_until("no namespace is left", lambda: Machine.namespaces() == before[2])
        assert addresses(network / "addresses") == [], "no address is left"
        bridge = [link for link in Machine.links() if link not in before[0]]
        assert len(bridge) == 1 and bridge[0].startswith("drk-"), f"no interface but the bridge is left: {bridge}"
        ours = [rule for rule in Machine.rules() if rule not in before[1]]
        assert len(ours) == 3, f"no rule but the network's own is left: {ours}"

        # A pod that runs when the agent stops is removed by `down`, and the network with it.
        apply(cluster, SERVER.format(name="left", host_port=port))
        running(cluster, "left")
        refused = subprocess.run([cluster.drakkar, "down", f"--data-dir={cluster.data}"], capture_output=True, text=True)
        assert refused.returncode != 0 and "a node agent is running" in refused.stderr, refused
        cluster.stop()
        assert "removed 1 pod" in cluster.run("down", f"--data-dir={cluster.data}")
        assert (Machine.links(), Machine.rules(), Machine.namespaces()) == before, \
            (Machine.links(), Machine.rules(), Machine.namespaces(), before)
        assert not cluster.processes("conmon")


def configured_network(drakkar):
    """As with a kubelet: not ready without a configuration, ready as soon as there is one. Two address families."""
    with NetworkCluster(drakkar) as cluster:
        configuration = cluster.work / "etc/cni/net.d"
        cluster.flags = ("--pod-network=cni", f"--cni-conf-dir={configuration}", "--cluster-dns=10.96.0.10")
        cluster.start()

        def ready():
            node = cluster.get("node", "n1") or {}
            return next((c for c in node.get("status", {}).get("conditions", []) if c["type"] == "Ready"), {})
        wait_until("the node is not ready", lambda: ready().get("status") == "False")
        assert "NetworkReady=false reason:NetworkPluginNotReady" in ready()["message"], ready()
        configuration.mkdir(parents=True)
        (configuration / "10-dual.conflist").write_text(json.dumps(DUAL_STACK))
        wait_until("the node is ready", lambda: ready().get("status") == "True")
        port = free_port()
        apply(cluster, SERVER.format(name="server", host_port=port))
        apply(cluster, CLIENT.format(name="client", members="dnsConfig: {options: [{name: timeout, value: '1'}]}"))
        server = running(cluster, "server")
        ips = [each["ip"] for each in server["podIPs"]]
        assert server["podIP"] == ips[0] and ips[0].startswith("10.123.0.") and ips[1].startswith("fd12:3456:"), ips
        running(cluster, "client")
        assert execute(cluster, "client", "wget", "-qO-", f"http://{ips[0]}/") == "from-server"
        assert execute(cluster, "client", "wget", "-qO-", f"http://[{ips[1]}]/") == "from-server"
        assert get(f"http://127.0.0.1:{port}/") == "from-server"
        names = execute(cluster, "client", "cat", "/etc/resolv.conf")
        assert "nameserver 10.96.0.10" in names and "options ndots:5 timeout:1" in names, names
        assert "search default.svc.cluster.local svc.cluster.local cluster.local" in names, names
        # It is torn down with the configuration it was made with.
        (configuration / "10-dual.conflist").unlink()
        wait_until("the node is not ready", lambda: ready().get("status") == "False")
        apply(cluster, CLIENT.format(name="waits", members="nodeName: n1"))
        wait_until("the event says why",
                   lambda: any(e["reason"] == "NetworkNotReady" for e in cluster.list("events")))
        cluster.run("delete", "pod", "server", "client", "waits")
        wait_until("the pods are gone", lambda: not cluster.list("pods"), 60)
        wait_until("no attachment is left",
                   lambda: not list((cluster.data / "network/attachments").glob("*.json")))
        wait_until("no interface is left", lambda: not [each for each in Machine.links() if each.startswith("veth")])
    shutil.rmtree("/var/lib/cni/networks/dual", ignore_errors=True)


def no_plugins(drakkar):
    with NetworkCluster(drakkar) as cluster:
        cluster.flags = ("--cni-bin-dir=/nowhere", f"--cni-conf-dir={cluster.work}/none")
        cluster.start()
        apply(cluster, CLIENT.format(name="client", members=""))
        client = running(cluster, "client")
        assert client["podIP"] == client["hostIP"], client
        node = cluster.get("node", "n1")
        shared = next(c for c in node["status"]["conditions"] if c["type"] == "PodsShareHostNetwork")
        assert shared["status"] == "True" and "/nowhere" in shared["message"], shared
        wait_until("the event says so",
                   lambda: any(e["reason"] == "PodsShareHostNetwork" for e in cluster.list("events")))
        cluster.run("delete", "pod", "client")
        wait_until("the pod is gone", lambda: not cluster.list("pods"))


def main():
    skip_without_containers()
    if not any(os.path.exists(f"{directory}/bridge") for directory in PLUGINS):
        print("skipped: needs the package containernetworking-plugins")
        raise SystemExit(77)
    missing = [program for program in ("ip", "iptables", "nsenter") if not shutil.which(program)]
    if missing:
        print(f"skipped: needs {', '.join(missing)}")
        raise SystemExit(77)
    if os.environ.get("DRAKKAR_IN_NETNS") != "1":
        # Namespaces of its own: no rule, interface or pinned namespace of the machine is touched, and a failed test
        # leaves none behind.
        environment = dict(os.environ, DRAKKAR_IN_NETNS="1")
        command = ["unshare", "--net", "--mount", sys.executable, *sys.argv]
        raise SystemExit(subprocess.run(command, env=environment).returncode)
    output("ip", "link", "set", "lo", "up")
    NETNS.mkdir(exist_ok=True)
    output("mount", "-t", "tmpfs", "tmpfs", str(NETNS))
    drakkar = sys.argv[1]
    started = time.monotonic()
    for part in (built_in_network, configured_network, no_plugins):
        part(drakkar)
        print(f"ok: {part.__name__} ({time.monotonic() - started:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
