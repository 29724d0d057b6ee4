"""An API server that only answers reads, with a cluster of any size that exists nowhere else: lists are made once, and
watches stay open without events. For clients that must cope with large clusters."""
import http.server
import json
import random
import threading

GROUP = "/apis/resource.k8s.io/v1"
CREATED = "2026-01-01T09:00:00Z"


def metadata(name, **more):
    return {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "creationTimestamp": CREATED, **more}


def devices(chance, count):
    """A few devices are tainted."""
    made = []
    for i in range(count):
        device = {"name": f"gpu-{i}", "attributes": {"model": {"string": "H100"}}, "capacity": {"memory": {"value": "80Gi"}}}
        if chance.random() < 0.015:
            device["taints"] = [{"key": "gpu.example.com/maintenance", "effect": "NoSchedule", "timeAdded": CREATED}]
        made.append(device)
    return made


def cluster(nodes, per_node, sizes=(1, 2, 4, 8), waiting=0):
    """Lists by path, always the same for the same size. About two thirds of the devices are held, some are unhealthy,
    and some wait for a binding condition. Claims have one of `sizes` devices. With `waiting`, a pod of this name waits
    for as many devices as it says, on one node."""
    chance = random.Random(7)
    objects = {GROUP + "/deviceclasses": [{"metadata": metadata("gpu.example.com"), "spec": {}}],
               GROUP + "/devicetaintrules": [],
               "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases": [],
               GROUP + "/resourceslices": [], GROUP + "/resourceclaims": [], "/api/v1/nodes": [], "/api/v1/pods": []}
    for n in range(nodes):
        node = f"gpu-{n:04}"
        ready = "False" if n % 211 == 5 else "True"
        objects["/api/v1/nodes"].append({"metadata": metadata(node), "spec": {}, "status": {
            "allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": ready}]}})
        objects[GROUP + "/resourceslices"].append({"metadata": metadata(f"{node}-slice"), "spec": {
            "driver": "gpu.example.com", "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices(chance, per_node)}})
        free = [i for i in range(per_node) if chance.random() < 0.7]
        for job in range(per_node):
            taken = free[:chance.choice(sizes)]
            free = free[len(taken):]
            if not taken:
                break
            claim, pod = f"job-{n}-{job}-gpu", f"job-{n}-{job}"
            results = [{"request": "gpu", "driver": "gpu.example.com", "pool": node, "device": f"gpu-{i}"} for i in taken]
            if chance.random() < 0.02:
                results[0]["bindingConditions"] = ["Attached"]
            resources = [{"resourceID": f"gpu.example.com/{node}/gpu-{i}",
                          "health": "Unhealthy" if chance.random() < 0.01 else "Healthy"} for i in taken]
            objects[GROUP + "/resourceclaims"].append({"metadata": metadata(claim, namespace="team"), "spec": {"devices": {
                "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": len(taken)}}]}},
                "status": {"allocation": {"devices": {"results": results}, "allocationTimestamp": CREATED},
                           "reservedFor": [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"}]}})
            objects["/api/v1/pods"].append({"metadata": metadata(pod, namespace="team"), "spec": {
                "nodeName": node, "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}]},
                "status": {"phase": "Running", "containerStatuses": [{"name": "main", "allocatedResourcesStatus": [
                    {"name": "claim:gpu", "resources": resources}]}], "conditions": [
                        {"type": "PodScheduled", "status": "True", "lastTransitionTime": CREATED}]}})
    if waiting:
        objects[GROUP + "/resourceclaims"].append({"metadata": metadata("waiting", namespace="team"), "spec": {"devices": {
            "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount",
                                                     "count": waiting}}]}}})
        objects["/api/v1/pods"].append({"metadata": metadata("waiting", namespace="team"), "spec": {
            "schedulerName": "default-scheduler", "containers": [{"name": "main", "image": "i"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "waiting"}]}, "status": {"phase": "Pending"}})
    kinds = {"deviceclasses": "DeviceClass", "devicetaintrules": "DeviceTaintRule", "leases": "Lease", "nodes": "Node",
             "resourceslices": "ResourceSlice", "resourceclaims": "ResourceClaim", "pods": "Pod"}
    lists = {}
    for path, items in objects.items():
        version = "v1" if path.startswith("/api/v1") else "/".join(path.split("/")[2:4])
        kind = kinds[path.rsplit("/", 1)[1]]
        for item in items:
            item.update(apiVersion=version, kind=kind)
        lists[path] = json.dumps({"apiVersion": version, "kind": f"{kind}List", "metadata": {"resourceVersion": "7"},
                                  "items": items}).encode()
    return lists


class HollowApi:
    """Serves the lists over HTTP on a free loopback port."""

    def __init__(self, nodes, per_node, **more):
        lists = cluster(nodes, per_node, **more)
        stopped = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                if stopped.is_set():
                    self.close_connection = True  # this one was open before
                    return
                path, _, query = self.path.partition("?")
                if "watch=true" in query and path in lists:
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    stopped.wait()
                    return
                body = lists.get(path)
                if body is None:
                    body = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound",
                                       "message": "not found", "code": 404}).encode()
                    self.send_response(404)
                else:
                    self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.stopped = stopped
        self.lists = lists
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def write_kubeconfig(self, path):
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "hollow",
            "clusters": [{"name": "hollow", "cluster": {"server": self.url}}],
            "users": [{"name": "viewer", "user": {}}],
            "contexts": [{"name": "hollow", "context": {"cluster": "hollow", "user": "viewer"}}]}))

    def count(self, path):
        """How many objects a list has."""
        return len(json.loads(self.lists[path])["items"])

    def close(self):
        """Ends watches and refuses connections from now on. May be repeated."""
        if not self.stopped.is_set():
            self.stopped.set()
            self.server.shutdown()
            self.server.server_close()
