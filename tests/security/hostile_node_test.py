#!/usr/bin/env python3
"""A node that lies: with its own certificate it tries to read and to change what belongs to another node, and to widen
what belongs to itself. Every request is made for real. Each is refused, and the other node's objects stay as they were."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]
from cluster import ROOT, SKIP, free_port, wait_until  # noqa: E402
from identities import Identities, Identity  # noqa: E402

CORE, DRA = "/api/v1", "/apis/resource.k8s.io/v1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
PODS, CLAIMS = f"{CORE}/namespaces/default/pods", f"{DRA}/namespaces/default/resourceclaims"
MERGE, JSON_PATCH, APPLY = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"


def node(name, **more):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **more}}


def lease(name, holder):
    return {"metadata": {"name": name}, "spec": {"holderIdentity": holder, "leaseDurationSeconds": 40}}


def slice_of(name, **where):
    return {"metadata": {"name": name}, "spec": {"driver": "d.example.com", **where, "devices": [{"name": "a"}],
                                                 "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}}


def pod(name, where, **spec):
    return {"metadata": {"name": name},
            "spec": {"nodeName": where, "containers": [{"name": "c", "image": "localhost/none:1"}], **spec}}


def set_up(create):
    create(f"{CORE}/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    for name in ("evil", "victim"):
        create(f"{CORE}/nodes", node(name))
        create(LEASES, lease(name, name))
        create(f"{DRA}/resourceslices", slice_of(f"of-{name}", nodeName=name))
        create(f"{CORE}/namespaces/default/serviceaccounts", {"metadata": {"name": f"account-{name}"}})
        create(f"{CORE}/namespaces/default/secrets", {"metadata": {"name": f"secret-{name}"}, "stringData": {"k": "v"}})
        create(f"{CORE}/namespaces/default/configmaps", {"metadata": {"name": f"config-{name}"}, "data": {"k": "v"}})
        create(CLAIMS, {"metadata": {"name": f"claim-{name}"},
                        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}})
        create(PODS, pod(f"pod-{name}", name, serviceAccountName=f"account-{name}",
                         resourceClaims=[{"name": "c", "resourceClaimName": f"claim-{name}"}],
                         containers=[{"name": "c", "image": "localhost/none:1",
                                      "envFrom": [{"secretRef": {"name": f"secret-{name}"}},
                                                  {"configMapRef": {"name": f"config-{name}"}}]}]))
    create(f"{CORE}/namespaces/default/secrets", {"metadata": {"name": "unused"}, "stringData": {"k": "v"}})


def of_others(uids):
    """Objects of the other node, or of no node."""
    yield "its Node", "GET", f"{CORE}/nodes/victim"
    yield "all Nodes", "GET", f"{CORE}/nodes"
    yield "its Node by a list", "GET", f"{CORE}/nodes?fieldSelector=metadata.name%3Dvictim"
    yield "Nodes that are not this one", "GET", f"{CORE}/nodes?fieldSelector=metadata.name!%3Devil"
    yield "its Node by a watch", "GET", f"{CORE}/nodes?watch=1&fieldSelector=metadata.name%3Dvictim&timeoutSeconds=1"
    for what, kind, body in (
            ("status", MERGE, {"status": {"conditions": []}}),
            ("status", JSON_PATCH, [{"op": "add", "path": "/status/addresses", "value": []}]),
            ("status", APPLY, {**node("victim"), "status": {"phase": "Pending"}}),
            ("labels", MERGE, {"metadata": {"labels": {"x": "y"}}}),
            ("taints", MERGE, {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}})):
        tail = "/status" if what == "status" else ""
        yield f"{what} of its Node ({kind})", "PATCH", f"{CORE}/nodes/victim{tail}?fieldManager=x", body, kind
    yield "its Node, replaced", "PUT", f"{CORE}/nodes/victim", node("victim")
    yield "its Node, deleted", "DELETE", f"{CORE}/nodes/victim"
    yield "all Nodes, deleted", "DELETE", f"{CORE}/nodes"
    yield "a third Node", "POST", f"{CORE}/nodes", node("third")
    yield "a Node with a generated name", "POST", f"{CORE}/nodes", {"metadata": {"generateName": "evil"}}

    yield "its Lease", "GET", f"{LEASES}/victim"
    yield "its Lease, patched", "PATCH", f"{LEASES}/victim", {"spec": {"renewTime": None}}, MERGE
    yield "its Lease, replaced", "PUT", f"{LEASES}/victim", lease("victim", "evil")
    yield "its Lease, applied", "PATCH", f"{LEASES}/victim?fieldManager=x&force=true", {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **lease("victim", "evil")}, APPLY
    yield "its Lease, deleted", "DELETE", f"{LEASES}/victim"
    yield "all Leases", "GET", LEASES
    yield "all Leases, deleted", "DELETE", LEASES
    yield "a third Lease", "POST", LEASES, lease("third", "evil")
    yield "a Lease with a generated name", "POST", LEASES, {"metadata": {"generateName": "evil"}, "spec": {}}
    yield "a Lease of a leader", "POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", lease("evil", "evil")
    yield "the scheduler's Lease", "GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"

    yield "its pod", "GET", f"{PODS}/pod-victim"
    yield "all pods", "GET", PODS
    yield "its pods", "GET", f"{CORE}/pods?fieldSelector=spec.nodeName%3Dvictim"
    yield "pods that are not this one's", "GET", f"{CORE}/pods?fieldSelector=spec.nodeName!%3Devil"
    yield "its pod's status", "PATCH", f"{PODS}/pod-victim/status", {"status": {"phase": "Failed"}}, MERGE
    yield "its pod's status, replaced", "PUT", f"{PODS}/pod-victim/status", {
        **pod("pod-victim", "victim"), "status": {"phase": "Failed"}}
    yield "its pod's status, applied", "PATCH", f"{PODS}/pod-victim/status?fieldManager=x&force=true", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod-victim"}, "status": {"phase": "Failed"}}, APPLY
    yield "its pod, deleted", "DELETE", f"{PODS}/pod-victim"
    yield "its pod, evicted", "POST", f"{PODS}/pod-victim/eviction", {
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "pod-victim", "namespace": "default"}}
    yield "all pods, deleted", "DELETE", PODS
    yield "its own pods, deleted as a collection", "DELETE", f"{PODS}?fieldSelector=spec.nodeName%3Devil"
    yield "its pod's log", "GET", f"{PODS}/pod-victim/log"
    yield "exec in its pod", "POST", f"{PODS}/pod-victim/exec?command=id&stdout=true"
    yield "exec in an own pod", "POST", f"{PODS}/pod-evil/exec?command=id&stdout=true"
    yield "the other node's port", "GET", f"{CORE}/nodes/victim/proxy/pods"

    for kind in ("secrets", "configmaps"):
        name = f"{'secret' if kind == 'secrets' else 'config'}-victim"
        home = f"{CORE}/namespaces/default/{kind}"
        yield f"its {kind}", "GET", f"{home}/{name}"
        yield f"all {kind}", "GET", home
        yield f"all {kind} of the cluster", "GET", f"{CORE}/{kind}"
        yield f"its {kind} by a list", "GET", f"{home}?fieldSelector=metadata.name%3D{name}"
        yield f"{kind} that have another name", "GET", f"{home}?fieldSelector=metadata.name!%3Dx"
        yield f"its {kind} by a watch", "GET", f"{home}?watch=true&timeoutSeconds=1"
        yield f"its {kind}, changed", "PATCH", f"{home}/{name}", {"metadata": {"labels": {"x": "y"}}}, MERGE
        yield f"own {kind}, changed", "PATCH", f"{home}/{name.replace('victim', 'evil')}", {"data": {}}, MERGE
    yield "a secret of nobody", "GET", f"{CORE}/namespaces/default/secrets/unused"

    yield "its claim", "GET", f"{CLAIMS}/claim-victim"
    yield "all claims", "GET", CLAIMS
    yield "its claim's status", "PATCH", f"{CLAIMS}/claim-victim/status", {"status": {"devices": []}}, MERGE
    yield "an own claim's status", "PATCH", f"{CLAIMS}/claim-evil/status", {"status": {"reservedFor": [
        {"resource": "pods", "name": "pod-evil", "uid": uids["pod-evil"]}]}}, MERGE
    yield "an own claim's binding", "PATCH", f"{CLAIMS}/claim-evil/binding", {"status": {}}, MERGE
    yield "an own claim, changed", "PATCH", f"{CLAIMS}/claim-evil", {"metadata": {"finalizers": None}}, MERGE
    yield "an own claim, deleted", "DELETE", f"{CLAIMS}/claim-evil"
    yield "a new claim", "POST", CLAIMS, {"metadata": {"name": "new"}, "spec": {}}
    for what, where in (("the other node", {"nodeName": "victim"}), ("all nodes", {"allNodes": True}),
                        ("chosen nodes", {"nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
                            {"key": "metadata.name", "operator": "In", "values": ["victim"]}]}]}}),
                        ("nodes of each device", {"perDeviceNodeSelection": True})):
        yield f"a slice of {what}", "POST", f"{DRA}/resourceslices", slice_of("new", **where)
    yield "its slice", "GET", f"{DRA}/resourceslices/of-victim"
    yield "all slices", "GET", f"{DRA}/resourceslices"
    yield "its slices", "GET", f"{DRA}/resourceslices?fieldSelector=spec.nodeName%3Dvictim"
    yield "its slice, changed", "PATCH", f"{DRA}/resourceslices/of-victim", {"spec": {"devices": []}}, MERGE
    yield "its slice, deleted", "DELETE", f"{DRA}/resourceslices/of-victim"
    yield "all slices, deleted", "DELETE", f"{DRA}/resourceslices"
    yield "its slices, deleted", "DELETE", f"{DRA}/resourceslices?fieldSelector=spec.nodeName%3Dvictim"
    yield "slices of one driver, deleted", "DELETE", f"{DRA}/resourceslices?fieldSelector=spec.driver%3Dd.example.com"
    yield "its CSINode", "POST", "/apis/storage.k8s.io/v1/csinodes", {"metadata": {"name": "victim"}, "spec": {"drivers": []}}
    for group, version, plural, body in (
            ("resource.k8s.io", "v1", "deviceclasses", {"metadata": {"name": "x"}, "spec": {}}),
            ("rbac.authorization.k8s.io", "v1", "clusterrolebindings", {
                "metadata": {"name": "x"}, "subjects": [{"kind": "Group", "name": "system:nodes",
                                                         "apiGroup": "rbac.authorization.k8s.io"}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}),
            ("scheduling.k8s.io", "v1", "priorityclasses", {"metadata": {"name": "x"}, "value": 1})):
        yield f"one of the {plural}", "POST", f"/apis/{group}/{version}/{plural}", body
    yield "a namespace", "POST", f"{CORE}/namespaces", {"metadata": {"name": "x"}}
    yield "a service account", "POST", f"{CORE}/namespaces/default/serviceaccounts", {"metadata": {"name": "x"}}

    for name, more in (("pod-victim", {}), ("pod-evil", {"audiences": ["bank"]}), ("pod-evil", {"uid": "0"}), (None, {})):
        spec = {key: value for key, value in more.items() if key != "uid"}
        if name:
            spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": more.get("uid", uids[name])}
        account = (name or "pod-evil").replace("pod-", "account-")
        yield (f"a token for {name} {more}", "POST", f"{CORE}/namespaces/default/serviceaccounts/{account}/token",
               {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
    yield ("a token of another account for an own pod", "POST",
           f"{CORE}/namespaces/default/serviceaccounts/account-victim/token",
           {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": {
               "apiVersion": "v1", "kind": "Pod", "name": "pod-evil", "uid": uids["pod-evil"]}}})


def of_its_own(uids):
    """What belongs to it, but not like this."""
    owner = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "u"}]
    for tail in ("", "/status"):
        path = f"{CORE}/nodes/evil{tail}"
        for what, body in (("a role", {"labels": {"node-role.kubernetes.io/control-plane": ""}}),
                           ("a restricted label", {"labels": {"node-restriction.kubernetes.io/x": "y"}}),
                           ("a label of Kubernetes", {"labels": {"x.k8s.io/y": "z"}}), ("an owner", {"ownerReferences": owner})):
            yield f"{what} by {tail or 'its Node'}", "PATCH", path, {"metadata": body}, MERGE
            yield f"{what} by {tail or 'its Node'}, strategically", "PATCH", path, {"metadata": body}, STRATEGIC
            yield (f"{what} by {tail or 'its Node'}, applied", "PATCH", path + "?fieldManager=x&force=true",
                   node("evil", **body), APPLY)
            yield f"{what} by {tail or 'its Node'}, replaced", "PUT", path, node("evil", **body)
    yield "its taints", "PATCH", f"{CORE}/nodes/evil", {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}, MERGE
    yield "its taints, as JSON patch", "PATCH", f"{CORE}/nodes/evil", [
        {"op": "add", "path": "/spec", "value": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}], JSON_PATCH
    yield "itself, deleted", "DELETE", f"{CORE}/nodes/evil"
    yield "its pod, changed", "PATCH", f"{PODS}/pod-evil", {"metadata": {"annotations": {"a": "b"}}}, MERGE
    yield "its pod, bound again", "POST", f"{PODS}/pod-evil/binding", {"target": {"kind": "Node", "name": "victim"}}
    yield "its pod, resized", "PATCH", f"{PODS}/pod-evil/resize", {"spec": {"containers": [
        {"name": "c", "resources": {"limits": {"cpu": "1"}}}]}}, MERGE
    yield "an ephemeral container", "PATCH", f"{PODS}/pod-evil/ephemeralcontainers", {"spec": {"ephemeralContainers": [
        {"name": "e", "image": "x", "envFrom": [{"secretRef": {"name": "secret-victim"}}]}]}}, MERGE
    yield "labels by a pod's status", "PATCH", f"{PODS}/pod-evil/status", {"metadata": {"labels": {"x": "y"}}}, MERGE
    yield "claims by a pod's status", "PATCH", f"{PODS}/pod-evil/status", {"status": {"resourceClaimStatuses": [
        {"name": "c", "resourceClaimName": "claim-victim"}]}}, MERGE
    yield "its slice, moved", "PATCH", f"{DRA}/resourceslices/of-evil", {"spec": {"nodeName": "victim"}}, MERGE
    for field, value in (("spec", {"nodeName": None, "allNodes": True}),):
        yield "its slice, for everybody", "PATCH", f"{DRA}/resourceslices/of-evil", {field: value}, MERGE


def mirror_pods(uids):
    """Mirror pods that would give the node access to something, or run elsewhere."""
    own = {"apiVersion": "v1", "kind": "Node", "name": "evil", "uid": uids["evil"], "controller": True}
    good = {"annotations": {"kubernetes.io/config.mirror": "x"}, "ownerReferences": [own]}

    def mirror(what, spec=None, where="evil", **metadata):
        body = pod("mirror", where, **(spec or {}))
        body["metadata"].update({**good, **metadata})
        return f"a mirror pod with {what}", "POST", PODS, body
    container = lambda **more: {"containers": [{"name": "c", "image": "i", **more}]}
    init = lambda **more: {"initContainers": [{"name": "i", "image": "i", **more}]}
    secret, config = {"name": "secret-victim"}, {"name": "config-victim"}
    for what, make in (("containers", container), ("init containers", init)):
        yield mirror(f"envFrom a secret in {what}", make(envFrom=[{"secretRef": secret}]))
        yield mirror(f"envFrom a config map in {what}", make(envFrom=[{"configMapRef": config}]))
        yield mirror(f"env of a secret in {what}", make(env=[{"name": "A", "valueFrom": {"secretKeyRef": {**secret, "key": "k"}}}]))
        yield mirror(f"env of a config map in {what}", make(env=[
            {"name": "A", "valueFrom": {"configMapKeyRef": {**config, "key": "k"}}}]))
    yield mirror("a pull secret", {"imagePullSecrets": [secret]})
    yield mirror("a service account", {"serviceAccountName": "account-victim"})
    yield mirror("a claim", {"resourceClaims": [{"name": "c", "resourceClaimName": "claim-victim"}]})
    for what, volume in (("secret", {"secret": {"secretName": "secret-victim"}}), ("config map", {"configMap": config}),
                         ("projected secret", {"projected": {"sources": [{"secret": secret}]}}),
                         ("projected config map", {"projected": {"sources": [{"configMap": config}]}}),
                         ("token", {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}),
                         ("trust bundle", {"projected": {"sources": [{"clusterTrustBundle": {"name": "x", "path": "t"}}]}}),
                         ("volume claim", {"persistentVolumeClaim": {"claimName": "x"}}),
                         ("ephemeral volume", {"ephemeral": {"volumeClaimTemplate": {"spec": {
                             "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}}),
                         ("CSI secret", {"csi": {"driver": "d.example.com", "nodePublishSecretRef": secret}})):
        yield mirror(f"a {what}", {"volumes": [{"name": "v", **volume}]})
    yield mirror("another node", where="victim")
    yield mirror("no node", where="")
    yield mirror("no annotation", annotations={})
    yield mirror("no owner", ownerReferences=[])
    yield mirror("two owners", ownerReferences=[own, {**own, "name": "victim", "uid": uids["victim"], "controller": False}])
    yield mirror("the other node as owner", ownerReferences=[{**own, "name": "victim", "uid": uids["victim"]}])
    yield mirror("the other node's UID", ownerReferences=[{**own, "uid": uids["victim"]}])
    yield mirror("an owner that is not its controller", ownerReferences=[{**own, "controller": False}])
    yield mirror("an owner that blocks", ownerReferences=[{**own, "blockOwnerDeletion": True}])


def main():
    if not shutil.which("openssl"):
        print("skipped: needs openssl")
        raise SystemExit(SKIP)
    work, port = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-security-")), free_port()
    log = open(work / "log", "a")
    server = subprocess.Popen([sys.argv[1], "apiserver", f"--data-dir={work}/data", f"--port={port}"], cwd=ROOT,
                              stdout=log, stderr=log)
    try:
        wait_until("the API server answers", lambda: (work / "data/admin.kubeconfig").exists(), 60)
        make, ca = Identities(work / "data", work, port), work / "data/pki/ca.crt"
        admin = Identity(ca, make.certificate("admin", "admin", ["system:masters"]))
        evil = Identity(ca, make.certificate("evil", "system:node:evil", ["system:nodes"]))

        def create(path, body):
            status, text = admin.ask(port, "POST", path, body)
            assert status == 201, f"{path}: {status} {text}"
        wait_until("it serves", lambda: admin.ask(port, "GET", "/readyz")[0] == 200, 60)
        wait_until("the namespace exists", lambda: admin.ask(port, "GET", f"{CORE}/namespaces/kube-node-lease")[0] == 200, 60)
        set_up(create)

        def everything():
            found = {}
            for path in (f"{CORE}/nodes", LEASES, f"{CORE}/pods", f"{CORE}/secrets", f"{CORE}/configmaps",
                         f"{DRA}/resourceclaims", f"{DRA}/resourceslices", f"{CORE}/namespaces",
                         f"{CORE}/serviceaccounts", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"):
                for item in json.loads(admin.ask(port, "GET", path)[1])["items"]:
                    found[path, item["metadata"].get("namespace"), item["metadata"]["name"]] = item
            return found
        before = everything()
        uids = {name: item["metadata"]["uid"] for (path, _, name), item in before.items() if path.endswith(("nodes", "pods"))}
        wrong, count = [], 0
        for attacks in (of_others, of_its_own, mirror_pods):
            for what, method, path, *rest in attacks(uids):
                body, kind = (rest + [None, None])[0], (rest + [None, None])[1]
                status, text = evil.ask(port, method, path, body, **({"kind": kind} if kind else {}))
                count += 1
                if status not in (403, 404, 405):
                    wrong.append(f"{what}: {status} {text[:200]}")
        # Who it says it is.
        for what, headers in (("impersonation", {"Impersonate-User": "admin", "Impersonate-Group": "system:masters"}),
                              ("a front proxy's headers", {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}),
                              ("both", {"X-Forwarded-For": "127.0.0.1", "X-Remote-User": "system:node:victim",
                                        "X-Remote-Group": "system:nodes"})):
            status, text = evil.ask(port, "GET", f"{CORE}/namespaces/default/secrets/secret-victim", headers=headers)
            count += 1
            if status != 403:
                wrong.append(f"{what}: {status} {text[:200]}")
        for number, (user, groups) in enumerate((("system:node:", ["system:nodes"]), ("evil", ["system:nodes"]),
                                                 ("system:node:victim", []), ("system:node:victim ", ["system:nodes"]),
                                                 ("system:node:evil\\/..\\/victim", ["system:nodes"]))):
            strange = Identity(ca, make.certificate(f"s{number}", user, groups))
            for path in (f"{CORE}/namespaces/default/secrets/secret-victim", f"{CORE}/nodes/victim", f"{LEASES}/victim"):
                count += 1
                status, text = strange.ask(port, "GET", path)
                if status != 403:
                    wrong.append(f"{user!r} of {groups} reads {path}: {status} {text[:200]}")
        after = everything()
        for key in sorted({*before, *after}, key=str):
            if before.get(key) != after.get(key):
                wrong.append(f"changed: {key}: {json.dumps(before.get(key))} -> {json.dumps(after.get(key))}")
        # What it may do still works, so the server does not simply reject everything.
        for what, method, path, *rest in (
                ("its Node", "GET", f"{CORE}/nodes/evil"), ("its Lease", "GET", f"{LEASES}/evil"),
                ("its pods", "GET", f"{CORE}/pods?fieldSelector=spec.nodeName%3Devil"),
                ("its secret", "GET", f"{CORE}/namespaces/default/secrets/secret-evil"),
                ("its claim", "GET", f"{CLAIMS}/claim-evil"), ("its slice", "GET", f"{DRA}/resourceslices/of-evil"),
                ("its status", "PATCH", f"{CORE}/nodes/evil/status", {"status": {"conditions": [
                    {"type": "Ready", "status": "True"}]}}, MERGE),
                ("its pod's status", "PATCH", f"{PODS}/pod-evil/status", {"status": {"message": "m"}}, MERGE)):
            body, kind = (rest + [None, None])[0], (rest + [None, None])[1]
            status, text = evil.ask(port, method, path, body, **({"kind": kind} if kind else {}))
            if status != 200:
                wrong.append(f"refused: {what}: {status} {text[:200]}")
        assert not wrong, "\n".join(wrong[:40]) + f"\n{len(wrong)} of {count}"
        print(f"ok: {count} requests of a hostile node were refused")
    except BaseException:
        print((work / "log").read_text()[-2000:])
        raise
    finally:
        server.terminate()
        server.wait(timeout=20)
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
