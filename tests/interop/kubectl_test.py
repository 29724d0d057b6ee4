"""An unmodified kubectl against `drakkar up`: each command and its output.

usage: kubectl_test.py DRAKKAR FOLDER [--core]    FOLDER has the kubectl to build; --core skips what old versions lack
"""
import concurrent.futures
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cluster import ROOT, Cluster, free_port, skip_without_containers, wait_until  # noqa: E402
import go_peer  # noqa: E402

LONG_POD = """
apiVersion: v1
kind: Pod
metadata: {name: long, labels: {app: long}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: localhost/busybox:latest
    imagePullPolicy: IfNotPresent
    command: [/bin/sh, -c, "trap 'exit 0' TERM; echo started; while :; do sleep 0.1; done"]
"""

DAEMON = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
""" + LONG_POD.partition("spec:\n")[2].replace("\n", "\n    ").join(["    ", "\n"])

CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: demo}}
data: {color: blue, size: small}
"""


DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd], categories: [toys]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Color, type: string, jsonPath: .spec.color}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    selectableFields: [{jsonPath: .spec.color}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            description: What the widget is like.
            required: [size]
            properties:
              size: {type: integer, minimum: 1, description: How big it is.}
              color: {type: string, default: red, enum: [red, blue]}
            x-kubernetes-validations:
            - {rule: "self.size < 100", message: too big}
            - {rule: "self.size >= oldSelf.size", message: cannot shrink}
          status:
            type: object
            properties: {size: {type: integer}}
"""

WIDGET = """
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec: {size: 3}
"""

POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-secrets-here}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: ["", example.com], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [configmaps, widgets]}
  variables:
  - {name: labels, expression: "object.metadata.?labels.orValue({})"}
  validations:
  - expression: "!('secret' in variables.labels)"
    messageExpression: "object.metadata.name + ' has the label secret'"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec: {policyName: no-secrets-here, validationActions: [Deny]}
"""


class Kubectl:
    def __init__(self, program, cluster):
        self.program = program
        self.drakkar = cluster.drakkar
        self.environment = dict(cluster.environment, HOME=str(cluster.work), EDITOR="sed -i s/small/tiny/",
                                # The default in newer versions.
                                KUBECTL_REMOTE_COMMAND_WEBSOCKETS="true")
        self.count = 0

    def __call__(self, *arguments, expect="", refuse=None, fails=False, stdin=None):
        """Runs one command and checks that its output matches every line of `expect`."""
        self.count += 1
        result = subprocess.run([self.program, *arguments], env=self.environment, input=stdin, capture_output=True,
                                text=True, timeout=60, check=False, cwd=ROOT)
        said = result.stdout + result.stderr
        command = "kubectl " + " ".join(arguments)
        assert (result.returncode != 0) == fails, f"{command}: exit status {result.returncode}\n{said}"
        for pattern in filter(None, expect if isinstance(expect, (list, tuple)) else [expect]):
            assert re.search(pattern, said, re.M), f"{command}: nothing matches /{pattern}/ in:\n{said}"
        if refuse:
            assert not re.search(refuse, said, re.M), f"{command}: /{refuse}/ should not be in:\n{said}"
        return result.stdout


def discovery(kubectl):
    kubectl("version", expect=[r"Server Version: v1\.37"])
    kubectl("cluster-info", expect="is running at")
    kubectl("api-versions", expect=[r"^v1$", r"^resource\.k8s\.io/v1$", r"^rbac\.authorization\.k8s\.io/v1$"])
    kubectl("api-resources", expect=[r"^pods +po +v1 +true +Pod$",
                                     r"^resourceclaims +resource\.k8s\.io/v1 +true +ResourceClaim$",
                                     r"^deviceclasses +resource\.k8s\.io/v1 +false +DeviceClass$"])
    kubectl("api-resources", "--namespaced=false", "-o", "name", expect=[r"^nodes$", r"^resourceslices\.resource\.k8s\.io$"])
    kubectl("explain", "resourceclaim.spec.devices.requests", expect=["FIELDS:", "firstAvailable", "exactly"])
    kubectl("explain", "pod.spec.containers", "--recursive", expect="livenessProbe")
    kubectl("get", "--raw", "/readyz", expect="^ok$")
    kubectl("get", "--raw", "/livez?verbose", expect=r"\[\+\]ping ok")
    kubectl("get", "nothings", fails=True, expect='the server doesn\'t have a resource type "nothings"')


def reading(kubectl):
    kubectl("get", "nodes", expect=[r"^NAME +STATUS +ROLES +AGE +VERSION", r"^n1 +Ready "])
    kubectl("get", "nodes", "-o", "wide", expect=[r"INTERNAL-IP", r"CONTAINER-RUNTIME"])
    kubectl("get", "nodes", "-o", "name", expect=r"^node/n1$")
    kubectl("get", "node", "n1", "-o", "jsonpath={.metadata.name}", expect="^n1$")
    kubectl("get", "nodes", "-o", "custom-columns=N:.metadata.name,V:.status.nodeInfo.kubeletVersion", expect=r"^n1 +v1\.37")
    kubectl("get", "nodes", "-o", "go-template={{range .items}}{{.metadata.name}}{{end}}", expect="^n1$")
    node = json.loads(kubectl("get", "node", "n1", "-o", "json"))
    assert node["kind"] == "Node" and "managedFields" not in node["metadata"], node["metadata"]
    kubectl("get", "node", "n1", "-o", "yaml", expect=[r"^apiVersion: v1$", r"^kind: Node$"])
    kubectl("get", "resourceslices", expect=r"^NAME +NODE +DRIVER +POOL +AGE")
    kubectl("get", "namespaces", expect=r"^kube-system +Active")
    kubectl("get", "pods", expect="No resources found in default namespace")
    kubectl("get", "pod", "missing", fails=True, expect=r'Error from server \(NotFound\): pods "missing" not found')
    kubectl("describe", "node", "n1", expect=[r"^Name: +n1$", "Allocatable:", "Conditions:"])
    kubectl("get", "nodes", "--field-selector=metadata.name=n1", expect="^n1 ")
    kubectl("get", "nodes", "-l", "kubernetes.io/hostname!=n1", refuse="^n1 ")


def writing(kubectl):
    kubectl("apply", "-f", "-", stdin=CONFIG, expect="^configmap/settings created$")
    kubectl("apply", "-f", "-", stdin=CONFIG, expect="^configmap/settings unchanged$")
    items = "\n".join("- " + CONFIG.replace("settings", name).strip().replace("\n", "\n  ") for name in ("one", "two"))
    kubectl("apply", "-f", "-", stdin=f"apiVersion: v1\nkind: List\nitems:\n{items}\n",
            expect=["^configmap/one created$", "^configmap/two created$"])
    kubectl("delete", "configmap", "one", "two", expect="deleted")
    changed = CONFIG.replace("blue", "green")
    kubectl("diff", "-f", "-", stdin=changed, fails=True, expect=[r"^-  color: blue$", r"^\+  color: green$"])
    kubectl("apply", "--dry-run=server", "-f", "-", stdin=changed, expect=r"configured \(server dry run\)")
    kubectl("get", "configmap", "settings", "-o", "jsonpath={.data.color}", expect="^blue$")
    kubectl("apply", "-f", "-", stdin=changed, expect="configured")
    kubectl("get", "configmap", "settings", "-o", "jsonpath={.data.color}", expect="^green$")
    kubectl("patch", "configmap", "settings", "-p", '{"data":{"shape":"round"}}', expect="patched$")
    kubectl("patch", "configmap", "settings", "--type=merge", "-p", '{"data":{"shape":null}}', expect="patched$")
    kubectl("patch", "configmap", "settings", "--type=json", "-p", '[{"op":"replace","path":"/data/color","value":"red"}]',
            expect="patched$")
    kubectl("patch", "configmap", "settings", "--type=json", "-p", '[{"op":"test","path":"/data/color","value":"no"}]', fails=True)
    kubectl("label", "configmap", "settings", "tier=front", expect="labeled$")
    kubectl("label", "configmap", "settings", "tier=back", fails=True, expect="already has a value")
    kubectl("label", "--overwrite", "configmap", "settings", "tier=back", expect="labeled$")
    kubectl("get", "configmaps", "-l", "tier in (back)", "-L", "tier", expect=r"^settings .* back$")
    kubectl("label", "configmap", "settings", "tier-", expect="unlabeled$")
    kubectl("annotate", "configmap", "settings", "note=checked", expect="annotated$")
    kubectl("edit", "configmap", "settings", expect="edited$")
    kubectl("get", "configmap", "settings", "-o", "jsonpath={.data.size}", expect="^tiny$")
    kubectl("replace", "-f", "-", stdin=CONFIG, expect="replaced$")
    kubectl("create", "-f", "-", stdin=CONFIG, fails=True, expect=r"\(AlreadyExists\).*configmaps \"settings\" already exists")
    kubectl("create", "--validate=strict", "-f", "-", fails=True, expect='unknown field "spec"',
            stdin=CONFIG.replace("settings", "other") + "spec: {a: 1}\n")
    kubectl("create", "configmap", "literal", "--from-literal=a=1", expect="created$")
    kubectl("create", "secret", "generic", "hidden", "--from-literal=p=s3", expect="created$")
    kubectl("describe", "secret", "hidden", expect=[r"^p: +2 bytes$"])
    kubectl("create", "serviceaccount", "robot", expect="created$")
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=configmaps", expect="created$")
    kubectl("create", "rolebinding", "robot-reads", "--role=reader", "--serviceaccount=default:robot", expect="created$")
    kubectl("create", "priorityclass", "high", "--value=1000", expect="created$")
    kubectl("delete", "configmap", "literal", expect='^configmap "literal" deleted')
    kubectl("delete", "configmap", "literal", fails=True, expect="not found")
    kubectl("delete", "configmap", "literal", "--ignore-not-found")


def serverside(kubectl):
    kubectl("apply", "--server-side", "-f", "-", stdin=CONFIG.replace("settings", "shared"), expect="serverside-applied$")
    other = CONFIG.replace("settings", "shared").replace("blue", "black")
    kubectl("apply", "--server-side", "--field-manager=other", "-f", "-", stdin=other, fails=True,
            expect=[r"conflict with \"kubectl\"", r"\.data\.color"])
    kubectl("apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-", stdin=other,
            expect="serverside-applied$")
    kubectl("get", "configmap", "shared", "-o", "jsonpath={.data.color}", expect="^black$")
    kubectl("get", "configmap", "shared", "--show-managed-fields", "-o", "yaml", expect=["manager: other", "f:color"])


def access(kubectl):
    kubectl("auth", "can-i", "create", "pods", expect="^yes$")
    kubectl("auth", "can-i", "get", "configmaps", "--as=system:serviceaccount:default:robot", expect="^yes$")
    kubectl("auth", "can-i", "delete", "nodes", "--as=system:serviceaccount:default:robot", fails=True, expect="^no")
    kubectl("auth", "whoami", expect="Username")
    token = kubectl("create", "token", "robot").strip()
    assert token.count(".") == 2, token


TWO_CONTAINERS = """
apiVersion: v1
kind: Pod
metadata: {name: two}
spec:
  terminationGracePeriodSeconds: 1
  restartPolicy: Never
  containers:
  - {name: main, image: "localhost/busybox:latest", imagePullPolicy: IfNotPresent, command: [/bin/sleep, "1000"], env: [{name: WHO, value: main}]}
  - {name: side, image: "localhost/busybox:latest", imagePullPolicy: IfNotPresent, command: [/bin/sleep, "1000"], env: [{name: WHO, value: side}]}
  - {name: over, image: "localhost/busybox:latest", imagePullPolicy: IfNotPresent, command: [/bin/true]}
"""


def at_a_terminal(command, kubectl):
    """Runs a command in a terminal of 33 lines and 77 columns, types hello, and returns the screen contents."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=kubectl.environment, start_new_session=True)
    os.close(theirs)
    screen, greeted = b"", False
    deadline = time.monotonic() + 60
    try:
        while time.monotonic() < deadline:
            if not select.select([ours], [], [], 1)[0]:
                continue
            try:
                read = os.read(ours, 4096)
            except OSError:
                break
            if not read:
                break
            screen += read
            if b"33 77" in screen and not greeted:
                greeted = True
                os.write(ours, b"hello\r")
        assert process.wait(10) == 7, screen
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return screen.decode(errors="replace")


def forwarding(kubectl):
    """port-forward to a server that listens on the pod's loopback interface only."""
    # Pods share the host's network here, and another test may run at the same time.
    port, closed = str(free_port()), str(free_port())
    kubectl("exec", "long", "--", "sh", "-c", "mkdir -p /www && yes 0123456789abcdef | head -n 262144 > /www/big && echo hi > /www/index.html"
            f" && httpd -p 127.0.0.1:{port} -h /www")
    big = b"0123456789abcdef\n" * (1 << 18)
    for web_socket in ("true", "false"):
        environment = dict(kubectl.environment, KUBECTL_PORT_FORWARD_WEBSOCKETS=web_socket)
        with subprocess.Popen([kubectl.program, "port-forward", "pod/long", f":{port}", f":{closed}"], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                ports = {}
                while len(ports) < 2:
                    line = process.stdout.readline()
                    assert line, process.stderr.read()
                    if found := re.match(r"Forwarding from 127\.0\.0\.1:(\d+) -> (\d+)", line):
                        ports[found[2]] = found[1]
                base = f"http://127.0.0.1:{ports[port]}"
                with concurrent.futures.ThreadPoolExecutor(8) as pool:
                    answers = list(pool.map(lambda path: urllib.request.urlopen(base + path, timeout=30).read(),
                                            ["/index.html", "/big"] * 8))
                assert answers == [b"hi\n", big] * 8, [len(answer) for answer in answers]
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{ports[closed]}/", timeout=30).read()
                    raise AssertionError("nothing listens there")
                except OSError:
                    pass
            finally:
                process.terminate()
            assert f"error forwarding port {closed} to pod long_default" in process.stderr.read()
    kubectl("port-forward", "pod/long", f":{port}", "--as=system:serviceaccount:default:robot", fails=True, expect="Forbidden|forbidden")


def commands(kubectl):
    """exec and cp, with the pod `long` running."""
    kubectl("create", "-f", "-", stdin=TWO_CONTAINERS)
    kubectl("exec", "long", "--", "echo", "hello", "there", expect="^hello there$")
    assert kubectl("exec", "long", "--", "sh", "-c", "echo out; echo err >&2") == "out\n"
    assert kubectl("exec", "-i", "long", "--", "cat", stdin="one\ntwo\n") == "one\ntwo\n"
    big = "0123456789abcdef\n" * (1 << 18)
    assert kubectl("exec", "-i", "long", "--", "md5sum", stdin=big) == kubectl(
        "exec", "long", "--", "sh", "-c", "yes 0123456789abcdef | head -n 262144 | md5sum")
    assert len(kubectl("exec", "long", "--", "dd", "if=/dev/zero", "bs=1024", "count=8192")) == 8 << 20
    code = subprocess.run([kubectl.program, "exec", "long", "--", "sh", "-c", "exit 42"], env=kubectl.environment,
                          capture_output=True, text=True, timeout=60, check=False)
    assert code.returncode == 42 and "command terminated with exit code 42" in code.stderr, code
    kubectl("exec", "long", "--", "/no/such", fails=True, expect="/no/such")
    kubectl("wait", "--for=jsonpath={.status.containerStatuses[2].state.terminated.reason}=Completed", "pod/two", "--timeout=30s")
    kubectl("exec", "two", "-c", "side", "--", "sh", "-c", "echo $WHO", expect="^side$")
    kubectl("exec", "two", "--", "sh", "-c", "echo $WHO", expect=['^Defaulted container "main" out of: main, side, over$', "^main$"])
    kubectl("exec", "two", "-c", "none", "--", "true", fails=True, expect="container none is not valid for pod two")
    kubectl("exec", "two", "-c", "over", "--", "true", fails=True, expect=r'container not found \("over"\)')
    kubectl("exec", "missing", "--", "true", fails=True, expect=r'\(NotFound\): pods "missing" not found')
    kubectl("exec", "long", "--as=system:serviceaccount:default:robot", "--", "true", fails=True, expect="Forbidden|forbidden")
    here = pathlib.Path(kubectl.environment["HOME"])
    (here / "sent").write_text("over there and back\n")
    kubectl("cp", str(here / "sent"), "long:/tmp/sent")
    kubectl("cp", "long:/tmp/sent", str(here / "back"))
    assert (here / "back").read_text() == "over there and back\n"
    older = dict(kubectl.environment, KUBECTL_REMOTE_COMMAND_WEBSOCKETS="false")
    spdy = subprocess.run([kubectl.program, "exec", "-i", "long", "--", "sh", "-c", "cat; echo err >&2; exit 42"], text=True,
                          input=big, capture_output=True, timeout=60, check=False, env=older)
    assert (spdy.returncode, spdy.stdout == big) == (42, True) and spdy.stderr.startswith("err\n"), (spdy.returncode, spdy.stderr)
    forwarding(kubectl)
    for program in (kubectl.program, kubectl.drakkar):
        said = at_a_terminal([program, "exec", "-it", "long", "--", "sh", "-c",
                              "until stty size | grep '33 77'; do sleep 0.1; done; read line; echo heard $line; exit 7"], kubectl)
        assert "heard hello" in said, said
    ours = subprocess.run([kubectl.drakkar, "exec", "-i", "long", "--", "sh", "-c", "cat; echo bad >&2; exit 9"], text=True,
                          input="to and fro\n", env=kubectl.environment, capture_output=True, timeout=60, check=False)
    assert (ours.returncode, ours.stdout) == (9, "to and fro\n") and ours.stderr.startswith("bad\n"), ours
    kubectl("delete", "pod", "two", "--grace-period=1", expect="deleted")


RESIZABLE = """
apiVersion: v1
kind: Pod
metadata: {name: elastic}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: localhost/busybox:latest
    imagePullPolicy: IfNotPresent
    command: [/bin/sleep, "1000"]
    resources: {requests: {cpu: 50m, memory: 32Mi}, limits: {cpu: 100m, memory: 64Mi}}
"""


def resizing(kubectl):
    kubectl("create", "-f", "-", stdin=RESIZABLE)
    kubectl("wait", "--for=condition=Ready", "pod/elastic", "--timeout=30s")
    kubectl("patch", "pod", "elastic", "--subresource=resize", "-p",
            '{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"60m"},"limits":{"cpu":"120m","memory":"96Mi"}}}]}}',
            expect="patched")
    kubectl("wait", "--for=jsonpath={.status.containerStatuses[0].resources.limits.memory}=96Mi", "pod/elastic", "--timeout=30s")
    kubectl("get", "pod", "elastic", "-o", "jsonpath={.status.containerStatuses[0].restartCount}", expect="^0$")
    kubectl("patch", "pod", "elastic", "--subresource=resize", "-p",
            '{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"9999"},"limits":{"cpu":"9999"}}}]}}')
    kubectl("wait", "--for=condition=PodResizePending", "pod/elastic", "--timeout=30s")
    kubectl("get", "pod", "elastic", "-o", "yaml", expect="reason: Infeasible")
    kubectl("delete", "pod", "elastic", "--grace-period=1", expect="deleted")


def debugging(kubectl):
    """Ephemeral containers, and attaching to one."""
    kubectl("debug", "long", "--image=localhost/busybox:latest", "--target=main", "-c", "looker", "--", "sh", "-c", "echo here; ps")
    wait_until("the ephemeral container is over", lambda: kubectl(
        "get", "pod", "long", "-o", "jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.reason}") == "Completed", 30)
    kubectl("logs", "long", "-c", "looker", expect=["^here$", "sleep 0.1|while :"])
    kubectl("debug", "-i", "long", "--image=localhost/busybox:latest", "-c", "talker", "--", "sh", "-c",
            "read line; echo got $line", stdin="this\n", expect="^got this$")
    kubectl("patch", "pod", "long", "--subresource=ephemeralcontainers", "--type=merge", "-p",
            '{"spec":{"ephemeralContainers":null}}', fails=True, expect="may not be removed")


def workloads(kubectl):
    """A DaemonSet: its pods, a rollout, a rollback, and its Service."""
    kubectl("apply", "-f", "-", stdin=DAEMON, expect="daemonset.apps/agent created")
    kubectl("rollout", "status", "daemonset/agent", "--timeout=30s", expect="successfully rolled out$")
    kubectl("get", "daemonset", "agent", expect=r"^agent +1 +1 +1 +1 +1 ")
    kubectl("set", "env", "daemonset/agent", "VERSION=2", expect="env updated$")
    kubectl("rollout", "status", "daemonset/agent", "--timeout=30s", expect="successfully rolled out$")
    kubectl("rollout", "history", "daemonset/agent", expect=["^1 ", "^2 "])
    kubectl("rollout", "undo", "daemonset/agent", expect="rolled back$")
    kubectl("rollout", "status", "daemonset/agent", "--timeout=30s", expect="successfully rolled out$")
    kubectl("create", "service", "clusterip", "agent", "--tcp=80:8080", expect="service/agent created")
    kubectl("get", "service", "agent", expect=r"^agent +ClusterIP +10\.")
    kubectl("delete", "daemonset,service", "agent", expect="deleted")
    kubectl("wait", "--for=delete", "pod", "-l", "app=agent", "--timeout=30s")
    kubectl("create", "quota", "few", "--hard=configmaps=1", expect="resourcequota/few created")
    kubectl("create", "configmap", "excess", fails=True, expect="exceeded quota: few, requested: configmaps=1")
    kubectl("delete", "quota", "few", expect="deleted")


def pods(kubectl, core):
    kubectl("apply", "-f", "examples/hello-device", expect=["deviceclass.*created", "resourceclaimtemplate.*created",
                                                            "pod/hello-device created"])
    kubectl("wait", "--for=condition=Ready", "pod/hello-device", "--timeout=30s", expect="condition met$")
    # Ready means that the container runs, not that it has printed anything.
    wait_until("it prints its device", lambda: "hello from sim-" in kubectl("logs", "hello-device"))
    kubectl("describe", "pod", "hello-device", expect=[r"^Status: +Running$", "Scheduled", "QoS Class"])
    kubectl("get", "events", "--field-selector=reason=Scheduled", expect="hello-device")
    kubectl("get", "resourceclaimtemplates", expect=[r"^NAME +AGE", "^one-device "])
    kubectl("create", "-f", "-", stdin=LONG_POD, expect="pod/long created")
    kubectl("wait", "--for=condition=Ready", "pod/long", "--timeout=30s", expect="condition met$")
    kubectl("get", "pods", expect=[r"^NAME +READY +STATUS +RESTARTS +AGE", r"^long +1/1 +Running"])
    kubectl("get", "pods", "-o", "wide", "-A", expect=[r"NAMESPACE", r"NOMINATED NODE", r"default +long .* n1 "])
    kubectl("get", "pods", "--sort-by=.metadata.name", expect=r"hello-device")
    wait_until("it prints that it started", lambda: "started" in kubectl("logs", "long"))
    kubectl("logs", "long", "--tail=1", expect="^started$")
    kubectl("logs", "-l", "app=long", expect="started")
    commands(kubectl)
    if not core:
        debugging(kubectl)
        resizing(kubectl)
    kubectl("cordon", "n1", expect="cordoned$")
    kubectl("get", "node", "n1", expect="SchedulingDisabled")
    kubectl("uncordon", "n1", expect="uncordoned$")
    kubectl("taint", "nodes", "n1", "example.com/t=1:NoSchedule", expect="tainted$")
    kubectl("taint", "nodes", "n1", "example.com/t-", expect="untainted$")
    kubectl("delete", "pod", "hello-device", expect="deleted")
    if not core:
        kubectl("drain", "n1", "--force", "--ignore-daemonsets", "--timeout=40s", expect=["evicting pod default/long", "drained$"])
        kubectl("uncordon", "n1", expect="uncordoned$")
    else:
        kubectl("delete", "pod", "long", "--grace-period=1", expect="deleted")
    kubectl("get", "pods", expect="No resources found")


OWNED = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}-child
  ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: {name}, uid: {uid}, blockOwnerDeletion: true}}]
"""


def propagation(kubectl):
    for policy in ("background", "foreground", "orphan"):
        kubectl("create", "configmap", policy)
        uid = kubectl("get", "configmap", policy, "-o", "jsonpath={.metadata.uid}").strip()
        kubectl("create", "-f", "-", stdin=OWNED.format(name=policy, uid=uid))
        kubectl("delete", "configmap", policy, f"--cascade={policy}", expect="deleted")
        child = ["get", "configmap", f"{policy}-child", "--ignore-not-found", "-o", "jsonpath={.metadata.ownerReferences}"]
        if policy == "orphan":
            wait_until("the orphan has no owner", lambda: kubectl(*child).strip() in ("", "[]"), 10)
            kubectl("get", "configmap", f"{policy}-child", expect=f"{policy}-child")
        else:
            wait_until(f"the child is gone after {policy} deletion", lambda: kubectl(*child).strip() == "", 10)
    kubectl("create", "namespace", "short", expect="created$")
    kubectl("-n", "short", "create", "configmap", "inside")
    kubectl("delete", "namespace", "short", "--timeout=30s", expect="deleted")
    kubectl("get", "namespace", "short", fails=True, expect="not found")
    kubectl("delete", "configmaps", "--all", expect="deleted")


def watching(kubectl):
    watch = subprocess.Popen([kubectl.program, "get", "configmaps", "-w", "--output-watch-events", "-o",
                              "jsonpath={.type} {.object.metadata.name}{'\\n'}"], env=kubectl.environment, cwd=ROOT,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        time.sleep(0.5)
        kubectl("create", "configmap", "seen")
        kubectl("delete", "configmap", "seen")
        seen = ""
        deadline = time.monotonic() + 20
        while "DELETED seen" not in seen and time.monotonic() < deadline:
            seen += watch.stdout.readline()
        assert "ADDED seen" in seen and "DELETED seen" in seen, seen
    finally:
        watch.kill()
        watch.wait()


def extending(kubectl):
    kubectl("apply", "-f", "-", stdin=DEFINITION, expect="customresourcedefinition.*/widgets.example.com created")
    kubectl("wait", "--for=condition=established", "crd/widgets.example.com", expect="condition met")
    kubectl("get", "crd", expect=r"^widgets\.example\.com +20")
    kubectl("api-resources", "--api-group=example.com", expect=r"^widgets +wd +example\.com/v1 +true +Widget$")
    kubectl("apply", "-f", "-", stdin=WIDGET, expect="^widget.example.com/w created$")
    kubectl("apply", "-f", "-", stdin=WIDGET, expect="^widget.example.com/w unchanged$")
    kubectl("get", "wd", expect=[r"^NAME +SIZE +COLOR +AGE$", r"^w +3 +red +\d+s$"])
    kubectl("get", "toys", expect=r"^w +3 +red")
    kubectl("get", "widgets", "--field-selector=spec.color=blue", expect="No resources found")
    kubectl("explain", "widget.spec", expect=["What the widget is like", r"size\s+<integer> -required-", "How big it is"])
    kubectl("patch", "wd", "w", "--type=merge", "-p", '{"spec":{"size":0}}', fails=True,
            expect="should be greater than or equal to 1")
    kubectl("patch", "wd", "w", "--type=merge", "-p", '{"spec":{"size":200}}', fails=True, expect="too big")
    kubectl("patch", "wd", "w", "--type=merge", "-p", '{"spec":{"size":2}}', fails=True, expect="cannot shrink")
    kubectl("create", "-f", "-", stdin=WIDGET.replace("size: 3", "size: 3, form: round").replace("name: w", "name: x"),
            fails=True, expect='unknown field "spec.form"')
    kubectl("scale", "wd", "w", "--replicas=5", expect="scaled")
    kubectl("get", "wd", "w", "-o", "jsonpath={.spec.size}", expect="^5$")
    kubectl("apply", "--server-side", "--force-conflicts", "--field-manager=painter", "-f", "-",
            stdin=WIDGET.replace("size: 3", "size: 5, color: blue"), expect="serverside-applied")
    kubectl("get", "wd", "w", "-o", "jsonpath={.spec.color}", expect="^blue$")
    kubectl("describe", "wd", "w", expect=[r"^Kind: +Widget$", r"Color: +blue"])
    kubectl("apply", "-f", "-", stdin=POLICY, expect=["no-secrets-here created", "everywhere created"])
    kubectl("get", "validatingadmissionpolicies", expect=r"^no-secrets-here +1 +<unset> +\d+s$")
    refused = ("ValidatingAdmissionPolicy 'no-secrets-here' with binding 'everywhere' denied request: "
               "{} has the label secret")
    kubectl("label", "wd", "w", "secret=yes", fails=True, expect=refused.format("w"))
    kubectl("create", "-f", "-", stdin=CONFIG.replace("app: demo", "secret: yes-it-is"), fails=True,
            expect=refused.format("settings"))
    kubectl("delete", "validatingadmissionpolicies,validatingadmissionpolicybindings", "--all", expect="deleted")
    kubectl("label", "wd", "w", "secret=yes", expect="labeled")
    kubectl("delete", "crd", "widgets.example.com", "--timeout=30s", expect="deleted")
    kubectl("get", "wd", fails=True, expect="the server doesn't have a resource type|could not find the requested resource")


def main():
    drakkar, folder = sys.argv[1:3]
    core = "--core" in sys.argv
    skip_without_containers()
    # Releases are stamped like this; otherwise the client cannot compare versions.
    minor = re.search(r"k8s\.io/kubectl v0\.(\d+)", (ROOT / "tests/interop" / folder / "go.mod").read_text())[1]
    program = go_peer.build(folder, os.environ.get("DRAKKAR_BINARY_DIR", "build/dev"),
                            f"-ldflags=-X k8s.io/component-base/version.gitVersion=v1.{minor}.0")
    with Cluster(drakkar) as cluster:
        cluster.start()
        kubectl = Kubectl(program, cluster)
        failures = []
        parts = [(discovery, ()), (reading, ()), (writing, ()), (pods, (core,)), (propagation, ()), (watching, ()),
                 (extending, ())]
        if not core:
            parts += [(serverside, ()), (access, ()), (workloads, ())]
        for part, arguments in parts:
            try:
                part(kubectl, *arguments)
            except AssertionError as error:
                failures.append(f"{part.__name__}: {error}")
        print(f"{kubectl.count} commands")
        if failures:
            raise SystemExit("\n".join(failures))


main()
