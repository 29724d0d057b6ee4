#!/usr/bin/env python3
"""Two API servers on one real etcd, over TLS: what one writes, the other shows at once, whatever happens to either."""
import json
import re
import pathlib
import subprocess
import sys
import threading

from cluster import wait_until
from etcd import Bench

MAPS = "/api/v1/namespaces/default/configmaps"
GROUP = "/apis/resource.k8s.io/v1"


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def check_start(bench):
    """Both start at the same time on an empty etcd and agree on everything that exists once."""
    a, b = bench.server("a").start(), bench.server("b").start()
    a.wait(), b.wait()
    for name in ("ca.crt", "ca.key", "front-proxy-ca.crt", "service-accounts.key"):
        assert (a.data / "pki" / name).read_bytes() == (b.data / "pki" / name).read_bytes(), name
    # The certificate that one server issued is good for the other.
    b.context = None
    (b.data / "admin.kubeconfig").write_text((a.data / "admin.kubeconfig").read_text())
    b.api("GET", "/api/v1/namespaces/kube-system")
    uids = {server.api("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin")["metadata"]["uid"]
            for server in (a, b)}
    assert len(uids) == 1, uids
    # A token of one is good for the other.
    token = a.api("POST", "/api/v1/namespaces/kube-system/serviceaccounts", {
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}) and a.api(
        "POST", "/api/v1/namespaces/kube-system/serviceaccounts/robot/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]
    review = b.api("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}})
    assert review["status"].get("authenticated"), review
    return a, b


def check_layout(bench, a):
    a.api("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    a.api("POST", "/api/v1/namespaces/default/services", {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}})
    a.api("POST", "/api/v1/namespaces/default/events", {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "seen"}, "reason": "Test", "message": "m",
        "involvedObject": {"kind": "Node", "name": "n1", "namespace": "default"}, "type": "Normal"})
    keys = bench.keys()
    for key in ("/registry/minions/n1", "/registry/services/specs/default/web", "/registry/namespaces/default",
                "/registry/events/default/seen", "/registry/clusterroles/cluster-admin"):
        assert keys[key][0].startswith(b"k8s\0"), (key, sorted(keys)[:20])
    assert keys["/registry/events/default/seen"][1] != 0, "an event without a lease"
    assert keys["/registry/minions/n1"][1] == 0, "a node with a lease"


def check_freshness(a, b):
    """A read without a resourceVersion shows everything that any server has acknowledged."""
    a.api("POST", MAPS, config_map("counter", n="0"))
    for n in range(1, 40):
        writer, reader = (a, b) if n % 2 else (b, a)
        writer.api("PATCH", f"{MAPS}/counter", {"data": {"n": str(n)}}, "application/merge-patch+json")
        assert reader.api("GET", f"{MAPS}/counter")["data"]["n"] == str(n)
        listed = reader.api("GET", f"{MAPS}?fieldSelector=metadata.name%3Dcounter")
        assert listed["items"][0]["data"]["n"] == str(n)


def check_races(a, b):
    """Of two writers that name the same version one gets a conflict; writers that name none are both done."""
    made = a.api("POST", MAPS, config_map("raced"))
    made["data"] = {"by": "a"}
    other = json.loads(json.dumps(made))
    other["data"] = {"by": "b"}
    codes = []
    threads = [threading.Thread(target=lambda s=s, o=o: codes.append(s.request("PUT", f"{MAPS}/raced", o)[0]))
               for s, o in ((a, made), (b, other))]
    [t.start() for t in threads], [t.join() for t in threads]
    assert sorted(codes) == [200, 409], codes

    failures = []

    def count(server, name):
        for n in range(20):
            code, text = server.request("PATCH", f"{MAPS}/raced", {"data": {f"{name}{n}": "x"}}, "application/merge-patch+json")
            if code == 409:  # five races lost in a row: the client's turn, as with one server
                code, text = server.request("PATCH", f"{MAPS}/raced", {"data": {f"{name}{n}": "x"}},
                                            "application/merge-patch+json")
            if code != 200:
                failures.append((code, text))
    threads = [threading.Thread(target=count, args=(s, n)) for s, n in ((a, "a"), (b, "b"))]
    [t.start() for t in threads], [t.join() for t in threads]
    assert not failures, failures[:2]
    assert len(a.api("GET", f"{MAPS}/raced")["data"]) == 41
    codes = []
    threads = [threading.Thread(target=lambda s=s: codes.append(s.request("POST", MAPS, config_map("once"))[0])) for s in (a, b)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert sorted(codes) == [201, 409], codes


def check_moving(a, b):
    """A list that began at one server, and a watch, continue at the other."""
    for n in range(7):
        a.api("POST", MAPS, config_map(f"page-{n}"))
    first = a.api("GET", f"{MAPS}?limit=3&labelSelector=")
    b.api("DELETE", f"{MAPS}/page-6")
    names = [i["metadata"]["name"] for i in first["items"]]
    token = first["metadata"]["continue"]
    for server in (b, a, b, a, b, a):
        if not token:
            break
        page = server.api("GET", f"{MAPS}?limit=3&continue={token}")
        assert page["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        names += [i["metadata"]["name"] for i in page["items"]]
        token = page["metadata"].get("continue")
    assert "page-6" in names and len(names) == len(set(names)), names

    version = a.api("GET", MAPS)["metadata"]["resourceVersion"]
    a.api("POST", MAPS, config_map("watched"))
    b.api("DELETE", f"{MAPS}/watched")
    connection = b.connect()
    connection.request("GET", f"{MAPS}?watch=1&resourceVersion={version}&timeoutSeconds=10")
    answer = connection.getresponse()
    events = [json.loads(answer.readline()) for _ in range(2)]
    assert [e["type"] for e in events] == ["ADDED", "DELETED"], events
    again = a.connect()
    again.request("GET", f"{MAPS}?watch=1&resourceVersion={events[0]['object']['metadata']['resourceVersion']}&timeoutSeconds=10")
    assert json.loads(again.getresponse().readline())["type"] == "DELETED"
    connection.close(), again.close()


def check_endpoints(a, b):
    """Endpoints and EndpointSlices `kubernetes` have the servers that are alive, and the Service names one of them."""
    def service(server):
        return server.api("GET", "/api/v1/namespaces/default/services/kubernetes")["spec"]["ports"][0]["port"]

    def ports(server):
        endpoints = server.api("GET", "/api/v1/namespaces/default/endpoints/kubernetes")
        slices = server.api("GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
                                   "?labelSelector=kubernetes.io/service-name%3Dkubernetes")["items"]
        found = sorted(port["port"] for subset in endpoints["subsets"] for port in subset["ports"])
        return found if sorted(p["port"] for s in slices for p in s["ports"]) == found else None
    both = sorted([a.port, b.port])
    wait_until("both servers are in the Endpoints", lambda: ports(a) == both and ports(b) == both)
    b.stop()
    wait_until("a server that stops leaves the Endpoints at once", lambda: ports(a) == [a.port], 8)
    wait_until("the Service does not name it", lambda: service(a) == a.port, 8)
    b.start().wait()
    wait_until("it is back", lambda: ports(a) == both)
    assert service(b) == a.port, "it changes only when it must"
    a.stop()
    wait_until("the Service names the other server", lambda: service(b) == b.port, 8)
    a.start().wait()
    wait_until("both are back", lambda: ports(a) == both)
    b.stop(9)
    wait_until("a server that is killed leaves them when its record expires", lambda: ports(a) == [a.port], 60)
    b.start().wait()


def check_loss(bench, a, b):
    """A server that is killed costs nothing; etcd's absence is reported and ends when it is back."""
    a.stop(9)
    b.api("POST", MAPS, config_map("without-a"))
    a.start().wait()
    assert a.api("GET", f"{MAPS}/without-a")
    bench.etcd_process.kill()
    bench.etcd_process.wait()
    code, text = b.request("POST", MAPS, config_map("without-etcd"))
    assert code in (500, 503, 504), (code, text)
    wait_until("it is not ready", lambda: b.request("GET", "/readyz")[0] != 200)
    bench.start_etcd()
    wait_until("it is ready again", lambda: b.request("GET", "/readyz")[0] == 200)
    b.api("POST", MAPS, config_map("with-etcd"))
    assert a.api("GET", f"{MAPS}/with-etcd")


def check_up(bench, a, *flags):
    """`drakkar up` on an etcd with other servers: its controllers and its scheduler work once they lead."""
    up = bench.server("up", "--node=false", "--scheduler-port=0", "--controllers-port=0", *flags, command="up").start().wait()
    size = {"cpu": "8", "memory": "8Gi", "pods": "50"}
    a.api("PATCH", "/api/v1/nodes/n1/status", {"status": {"allocatable": size, "capacity": size}},
          "application/merge-patch+json")
    pods = "/api/v1/namespaces/default/pods"
    wait_until("its controllers lead", lambda: a.request("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0] == 200, 60)
    a.api("POST", pods, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "on-up"}, "spec": {
        "tolerations": [{"operator": "Exists"}], "containers": [{"name": "c", "image": "i"}]}})
    wait_until("its scheduler leads", lambda: up.api("GET", f"{pods}/on-up")["spec"].get("nodeName") == "n1", 60)
    leases = a.api("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")["items"]
    held = {l["metadata"]["name"] for l in leases if l["spec"].get("holderIdentity")}
    assert {"kube-scheduler", "kube-controller-manager"} <= held, held
    up.stop()
    a.api("DELETE", f"{pods}/on-up?gracePeriodSeconds=0")


def check_mistakes(bench):
    def output(*flags):
        result = subprocess.run([bench.drakkar, "apiserver", f"--data-dir={bench.work}/mistake", "--port=0", *flags],
                                capture_output=True, text=True, check=False, timeout=60)
        assert result.returncode == 1, result
        return result.stderr
    assert "needs --etcd-servers" in output("--etcd-cafile=x")
    assert "/no/such/ca.crt" in output(f"--etcd-servers={bench.url}", "--etcd-cafile=/no/such/ca.crt")
    told = output(f"--etcd-servers={bench.url}")  # without a client certificate and its CA
    assert f"no connection to {bench.url} (" in told and "certificate" in told, told
    told = output("--etcd-servers=http://127.0.0.1:1,http://127.0.0.1:2")
    assert "no connection to http://127.0.0.1:1 (connection refused), http://127.0.0.1:2 (connection refused)" in told, told
    told = output(f"--etcd-servers={bench.url.replace('https', 'http')}")  # speaks TLS, and is not asked to
    assert re.search(r"no connection to \S+ \(.*clos", told), told


def main():
    with Bench(sys.argv[1], tls=True) as bench:
        bench.start_etcd()
        a, b = check_start(bench)
        check_layout(bench, a)
        check_freshness(a, b)
        check_races(a, b)
        check_moving(a, b)
        check_endpoints(a, b)
        check_loss(bench, a, b)
        check_up(bench, a)
        check_up(bench, a, "--separate-processes")
        check_mistakes(bench)
    print("ok: two API servers on one etcd")


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    main()
