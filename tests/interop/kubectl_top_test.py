#!/usr/bin/env python3
"""An unmodified kubectl and a server behind an APIService: top, api-resources, apiservices and explain."""
import base64
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "e2e"))
import go_peer  # noqa: E402
import extension_server  # noqa: E402
from control_plane import NODE, ControlPlane, wait_until  # noqa: E402


def main(drakkar):
    kubectl = go_peer.build("kubectl", os.environ.get("DRAKKAR_BINARY_DIR", "build/dev"))
    with ControlPlane(drakkar) as plane:
        def run(*arguments, check=True):
            result = subprocess.run([kubectl, *arguments], env=plane.environment, capture_output=True, text=True, check=False,
                                    timeout=60)
            assert not check or result.returncode == 0, (arguments, result.stderr)
            return result.stdout if result.returncode == 0 else ""

        plane.run("apply", "-f", "-", stdin=NODE)
        certificate, key = extension_server.make_certificate(plane.work)
        authentication = json.loads(run("get", "-n", "kube-system", "configmap", "extension-apiserver-authentication", "-o",
                                        "json"))["data"]
        server = extension_server.ExtensionServer(certificate, key, authentication)
        bundle = base64.b64encode(certificate.read_bytes()).decode()
        for each in (extension_server.SERVICE, extension_server.endpoint_slice(server.port),
                     extension_server.api_service(bundle)):
            plane.run("apply", "-f", "-", stdin=json.dumps(each))
        run("wait", "--for=condition=Available", "apiservice/v1beta1.metrics.k8s.io", "--timeout=30s")
        nodes = run("top", "nodes")
        assert nodes.splitlines()[1].split() == ["n1", "250m", "3%", "1024Mi", "12%"], nodes
        pods = run("top", "pods", "-A")
        assert pods.splitlines()[1].split() == ["default", "web", "10m", "5Mi"], pods
        print("kubectl top nodes and pods")
        resources = run("api-resources", "--api-group=metrics.k8s.io")
        assert [line.split()[0] for line in resources.splitlines()[1:]] == ["nodes", "pods"], resources
        local = run("get", "apiservices", "v1.apps")
        assert local.splitlines()[1].split()[:3] == ["v1.apps", "Local", "True"], local
        other = run("get", "apiservice", "v1beta1.metrics.k8s.io")
        assert other.splitlines()[1].split()[:3] == ["v1beta1.metrics.k8s.io", "kube-system/metrics-server", "True"], other
        raw = json.loads(run("get", "--raw", f"{extension_server.ROOT_PATH}/nodes/n1"))
        assert raw["usage"]["cpu"] == "250m", raw
        wait_until("the document of the server behind is served",
                   lambda: run("explain", "nodes", "--api-version=metrics.k8s.io/v1beta1", check=False))
        explained = run("explain", "nodes", "--api-version=metrics.k8s.io/v1beta1")
        assert "NodeMetrics says what a node uses." in explained, explained
        print("kubectl api-resources, get apiservices, get --raw and explain")
        server.stop()


main(sys.argv[1])
