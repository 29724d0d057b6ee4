#!/usr/bin/env python3
"""kube-apiserver and Drakkar's API server take over each other's etcd, in both directions, and serve it side by side.
Every kind that Drakkar stores is created by each of them and read by the other, with the same contents."""
import json
import pathlib
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "kube"))
from peers import KubeServer, compact, find_etcd, find_program  # noqa: E402
from cluster import free_port, wait_until  # noqa: E402

CONTAINER = {"name": "c", "image": "none"}
LABELS = {"app": "x"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}}
SELECTOR = {"matchLabels": LABELS}
RESOURCE = "resource.k8s.io/v1"
DEVICES = {"requests": [{"name": "r", "exactly": {"deviceClassName": "class-%s"}}]}

# apiVersion, kind, plural, namespaced, and what an object has beside its metadata.
OBJECTS = [
    ("v1", "ConfigMap", "configmaps", True, {"data": {"a": "1"}, "binaryData": {"b": "AAEC/w=="}}),
    ("v1", "Secret", "secrets", True, {"type": "Opaque", "data": {"k": "c2VjcmV0"}}),
    ("v1", "ServiceAccount", "serviceaccounts", True, {"automountServiceAccountToken": False}),
    ("v1", "Node", "nodes", False, {"spec": {"podCIDR": "10.9.0.0/24"}}),
    ("v1", "Service", "services", True, {"spec": {"clusterIP": "None", "selector": LABELS, "ports": [
        {"name": "http", "port": 80, "targetPort": "web"}]}}),
    ("v1", "Endpoints", "endpoints", True, {"subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}]}),
    ("v1", "Pod", "pods", True, {"spec": {
        "containers": [{**CONTAINER, "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}, "claims": [{"name": "d"}]},
                        "livenessProbe": {"httpGet": {"path": "/", "port": "web"}, "periodSeconds": 7},
                        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}],
        "resourceClaims": [{"name": "d", "resourceClaimName": "none"}], "automountServiceAccountToken": False,
        "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 5, "effect": "NoExecute"}],
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}]}}),
    ("v1", "PersistentVolume", "persistentvolumes", False, {"spec": {
        "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp"}}}),
    ("v1", "PersistentVolumeClaim", "persistentvolumeclaims", True, {"spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}}),
    ("v1", "ReplicationController", "replicationcontrollers", True, {"spec": {"replicas": 0, "selector": LABELS,
                                                                             "template": TEMPLATE}}),
    ("v1", "PodTemplate", "podtemplates", True, {"template": TEMPLATE}),
    ("v1", "LimitRange", "limitranges", True, {"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}}),
    ("v1", "ResourceQuota", "resourcequotas", True, {"spec": {"hard": {"services.loadbalancers": "7"}}}),
    ("v1", "Event", "events", True, {"reason": "R", "message": "m", "type": "Normal", "count": 3,
                                     "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}}),
    (RESOURCE, "DeviceClass", "deviceclasses", False, {"spec": {
        "selectors": [{"cel": {"expression": 'device.driver == "x.example.com"'}}]}}),
    (RESOURCE, "ResourceClaim", "resourceclaims", True, {"spec": {"devices": DEVICES}}),
    (RESOURCE, "ResourceClaimTemplate", "resourceclaimtemplates", True, {"spec": {"spec": {"devices": DEVICES}}}),
    (RESOURCE, "ResourceSlice", "resourceslices", False, {"spec": {
        "driver": "x.example.com", "nodeName": "n", "pool": {"name": "pool-%s", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "a", "attributes": {"model": {"string": "x"}, "cores": {"int": 4}, "fast": {"bool": True},
                                                 "v": {"version": "1.2.3"}}, "capacity": {"memory": {"value": "8Gi"}}}]}}),
    ("coordination.k8s.io/v1", "Lease", "leases", True, {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 9,
                                                                  "renewTime": "2026-01-02T03:04:05.000006Z"}}),
    ("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", False, {"value": 7, "description": "d"}),
    ("rbac.authorization.k8s.io/v1", "Role", "roles", True, {"rules": [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", True, {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "jane"}]}),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", False, {"rules": [
        {"nonResourceURLs": ["/x"], "verbs": ["get"]}]}),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", False, {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "s"}]}),
    ("storage.k8s.io/v1", "StorageClass", "storageclasses", False, {"provisioner": "p.example.com",
                                                                   "parameters": {"k": "v"}}),
    ("storage.k8s.io/v1", "CSIDriver", "csidrivers", False, {"spec": {"attachRequired": False}}),
    ("storage.k8s.io/v1", "CSINode", "csinodes", False, {"spec": {"drivers": [{"name": "d.example.com", "nodeID": "n"}]}}),
    ("storage.k8s.io/v1", "VolumeAttachment", "volumeattachments", False, {"spec": {
        "attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}),
    ("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", False, {"handler": "h"}),
    ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", True, {"spec": {"minAvailable": "50%",
                                                                                "selector": SELECTOR}}),
    ("apps/v1", "Deployment", "deployments", True, {"spec": {"replicas": 0, "selector": SELECTOR, "template": TEMPLATE}}),
    ("apps/v1", "ReplicaSet", "replicasets", True, {"spec": {"replicas": 0, "selector": SELECTOR, "template": TEMPLATE}}),
    ("apps/v1", "StatefulSet", "statefulsets", True, {"spec": {"replicas": 0, "serviceName": "s", "selector": SELECTOR,
                                                               "template": TEMPLATE}}),
    ("apps/v1", "DaemonSet", "daemonsets", True, {"spec": {"selector": SELECTOR, "template": {
        **TEMPLATE, "spec": {"containers": [CONTAINER], "nodeSelector": {"no": "where"}}}}}),
    ("apps/v1", "ControllerRevision", "controllerrevisions", True, {"revision": 3, "data": {"a": [1, "b", {"c": None}]}}),
    ("batch/v1", "Job", "jobs", True, {"spec": {"suspend": True, "template": {"spec": {
        "restartPolicy": "Never", "containers": [CONTAINER]}}}}),
    ("batch/v1", "CronJob", "cronjobs", True, {"spec": {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": {
        "template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}}}}}),
    ("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", True, {"spec": {
        "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}}),
    ("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", True, {"addressType": "IPv4", "ports": [{"port": 80}],
                                                                      "endpoints": [{"addresses": ["10.1.2.3"]}]}),
    ("networking.k8s.io/v1", "Ingress", "ingresses", True, {"spec": {"defaultBackend": {"service": {
        "name": "s", "port": {"number": 80}}}}}),
    ("networking.k8s.io/v1", "IngressClass", "ingressclasses", False, {"spec": {"controller": "example.com/c"}}),
    ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", True, {"spec": {"podSelector": SELECTOR, "ingress": [
        {"ports": [{"port": 80, "endPort": 90}]}], "policyTypes": ["Ingress"]}}),
    ("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", "prioritylevelconfigurations", False, {"spec": {
        "type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}}}),
]


def url(version, plural, namespaced, name=""):
    root = "/api/v1" if version == "v1" else f"/apis/{version}"
    return root + ("/namespaces/default" if namespaced else "") + f"/{plural}" + (f"/{name}" if name else "")


def named(value, name):
    if isinstance(value, dict):
        return {k: named(v, name) for k, v in value.items()}
    if isinstance(value, list):
        return [named(v, name) for v in value]
    return value % name if isinstance(value, str) and "%s" in value else value


class Swap(KubeServer):
    def start_ours(self, port):
        """Drakkar's API server on the same etcd, with the same CA and token key."""
        folder = self.work / "drakkar/pki"
        if not folder.exists():
            folder.mkdir(parents=True)
            for source, name in (("ca.crt", "ca.crt"), ("ca.key", "ca.key"), ("sa.key", "service-accounts.key")):
                (folder / name).write_bytes((self.pki / source).read_bytes())
        self.start("drakkar", "apiserver", f"--data-dir={self.work}/drakkar", f"--port={port}",
                   f"--etcd-servers={self.etcd_url}")
        self.ours_port = port
        wait_until("Drakkar serves", lambda: self.ours("GET", "/readyz", raw=True) == "ok", 60)

    def ours(self, method, path, body=None, raw=False, content_type="application/json"):
        import base64
        import http.client
        import re
        import ssl
        config = self.work / "drakkar/scheduler.kubeconfig"
        if not config.exists():
            return None
        text = (self.work / "drakkar/admin.kubeconfig").read_text()
        pem = self.work / "ours.pem"
        pem.write_bytes(b"".join(base64.b64decode(re.search(rf"{f}: (\S+)", text).group(1))
                                 for f in ("client-certificate-data", "client-key-data")))
        context = ssl.create_default_context(cafile=self.pki / "ca.crt")
        context.load_cert_chain(pem)
        connection = http.client.HTTPSConnection("127.0.0.1", self.ours_port, context=context, timeout=20)
        try:
            connection.request(method, path, compact(body) if body is not None else None, {"Content-Type": content_type})
            answer = connection.getresponse()
            text = answer.read().decode()
        except OSError:
            if raw:
                return None
            raise
        finally:
            connection.close()
        if raw:
            return text
        assert answer.status < 300, f"Drakkar: {method} {path}: {answer.status} {text}"
        return json.loads(text)

    def theirs(self, method, path, body=None, content_type="application/json"):
        return self.api(method, path, body, content_type)


def create_all(call, name):
    made = {}
    for version, kind, plural, namespaced, rest in OBJECTS:
        body = {"apiVersion": version, "kind": kind,
                "metadata": {"name": f"{plural[:8]}-{name}", "labels": {"by": name}, "annotations": {"a": "ü"},
                             "finalizers": ["example.com/keep"]}, **named(rest, name)}
        if kind in ("Event", "Pod"):
            del body["metadata"]["finalizers"]
        path = url(version, plural, namespaced)
        made[(version, plural, namespaced, body["metadata"]["name"])] = call(
            "POST", f"{path}?fieldManager=swap", body)
    return made


def compare(made, call, who):
    """What `call` returns now is what was created."""
    differences = []
    for (version, plural, namespaced, name), before in made.items():
        now = call("GET", url(version, plural, namespaced, name))
        for path in sorted(set(flat(before)) | set(flat(now))):
            was, is_now = flat(before).get(path), flat(now).get(path)
            # Go prints some fields even if they are zero ("status": {}, "desiredNumberScheduled": 0). To say so or nothing
            # means the same, in the store as well.
            if was != is_now and not (was in ZEROS and is_now in ZEROS):
                differences.append(f"{plural}/{name} {path}: {was!r} is now {is_now!r}")
        if not now["metadata"].get("managedFields"):
            differences.append(f"{plural}/{name} has lost its managedFields")
    assert not differences, f"{who} shows other objects:\n" + "\n".join(differences)


ZEROS = (None, {}, 0, "")


def flat(value, path=""):
    """The leaves of a JSON document by their paths."""
    if isinstance(value, dict) and value:
        return {p: v for k, each in value.items() for p, v in flat(each, f"{path}.{k}").items()}
    if isinstance(value, list) and value:
        return {p: v for i, each in enumerate(value) for p, v in flat(each, f"{path}[{i}]").items()}
    return {path: value}


def change_all(made, call):
    """Every object through an update, which reads, merges and writes it."""
    changed = {}
    for (version, plural, namespaced, name) in made:
        changed[(version, plural, namespaced, name)] = call(
            "PATCH", url(version, plural, namespaced, name) + "?fieldManager=other",
            {"metadata": {"annotations": {"changed": "yes"}}}, content_type="application/merge-patch+json")
    return changed


def use_devices(swap, call):
    """A claim that is allocated and reserved by a pod."""
    claim = call("POST", url(RESOURCE, "resourceclaims", True), {
        "apiVersion": RESOURCE, "kind": "ResourceClaim",
        "metadata": {"name": "used", "finalizers": ["resource.kubernetes.io/delete-protection"]},
        "spec": {"devices": named(DEVICES, "kube")}})
    claim["status"] = {"allocation": {"devices": {"results": [
        {"request": "r", "driver": "x.example.com", "pool": "pool-kube", "device": "a"}]}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}
    return call("PUT", url(RESOURCE, "resourceclaims", True, "used") + "/status", claim)


def main():
    apiserver, etcd = find_program("kube-apiserver", sys.argv[2]), find_etcd()
    with Swap(sys.argv[1], apiserver, etcd) as swap:
        swap.start_kube("--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,DefaultTolerationSeconds,"
                        "Priority,StorageObjectInUseProtection,RuntimeClass,ResourceQuota,LimitRanger")
        command = swap.processes["kube-apiserver"].args
        swap.etcd_url = next(a.split("=", 1)[1] for a in command if a.startswith("--etcd-servers="))
        swap.theirs("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.swap.example.com"},
            "spec": {"group": "swap.example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                         "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}})
        swap.theirs("POST", url("v1", "serviceaccounts", True), {  # no controller does it here
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
        kube = create_all(swap.theirs, "kube")
        used = use_devices(swap, swap.theirs)

        # Drakkar takes over.
        swap.stop("kube-apiserver")
        swap.start_ours(free_port())
        compare(kube, swap.ours, "Drakkar")
        compare({(RESOURCE, "resourceclaims", True, "used"): used}, swap.ours, "Drakkar")
        ours = create_all(swap.ours, "ours")
        changed = change_all(kube, swap.ours)
        listed = swap.ours("GET", url(RESOURCE, "resourceclaims", True) + "?labelSelector=" + urllib.parse.quote("by=kube"))
        assert len(listed["items"]) == 1, listed

        # kube-apiserver takes over again, and both run.
        swap.processes.pop("kube-apiserver", None)
        swap.start("kube-apiserver", *command, ours=False)
        wait_until("kube-apiserver is ready", swap.is_ready, 120)
        compare(ours, swap.theirs, "kube-apiserver")
        compare(changed, swap.theirs, "kube-apiserver")
        compare({(RESOURCE, "resourceclaims", True, "used"): used}, swap.theirs, "kube-apiserver")
        changed = change_all(ours, swap.theirs)
        compare(changed, swap.ours, "Drakkar, beside kube-apiserver")
        for n in range(10):
            writer, reader = (swap.ours, swap.theirs) if n % 2 else (swap.theirs, swap.ours)
            writer("PATCH", url("v1", "configmaps", True, "configma-kube"), {"data": {"n": str(n)}},
                   content_type="application/merge-patch+json")
            assert reader("GET", url("v1", "configmaps", True, "configma-kube"))["data"]["n"] == str(n)
        # What only kube-apiserver knows is still there.
        assert swap.theirs("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.swap.example.com")
    print(f"ok: {len(OBJECTS)} kinds moved between kube-apiserver and Drakkar and back")


if __name__ == "__main__":
    main()
