#!/usr/bin/env python3
"""The public network driver dranet, unmodified and from its own manifests: it moves interfaces of the host into pods and
back, through restarts of either side."""
import os
import subprocess
import sys

from node_drivers import DRIVERS, DriverCluster, enter, manifests, wait_until

LEFT_BEHIND = ("/dev/infiniband",)  # directories that the driver's volumes create on a machine without such devices
AGNHOST = "registry.k8s.io/e2e-test-images/agnhost:2.54"


def add_interface(name):
    """An interface of the host that pods can have; the kind of it. Not every kernel has dummies."""
    for kind in ("dummy", "ifb"):
        if subprocess.run(["ip", "link", "add", name, "type", kind], capture_output=True, check=False).returncode == 0:
            subprocess.run(["ip", "link", "set", name, "up"], check=True)
            return kind
    raise AssertionError("this kernel has no interfaces to give away")


def on_host(name):
    return subprocess.run(["ip", "link", "show", name], capture_output=True, check=False).returncode == 0


def main():
    enter("dranet")
    absent = [path for path in LEFT_BEHIND if not os.path.exists(path)]
    try:
        run()
    finally:
        for path in absent:
            if os.path.isdir(path):
                os.rmdir(path)


def run():
    kind = add_interface("given0")
    source = manifests("dranet")
    install = (source / "install.yaml").read_text()
    image = next(line.split("image: ")[1].strip() for line in install.splitlines() if "image: " in line)
    claim = (source / "tests/manifests/resourceclaim.yaml").read_text().replace('type == "dummy"', f'type == "{kind}"')
    # The example's image serves forever by itself; ours has only a shell.
    claim = claim.replace(f"image: {AGNHOST}", f"image: {AGNHOST}\n    command: [\"/bin/sleep\", \"1000000\"]")
    with DriverCluster(sys.argv[1], "--nri-request-timeout=10") as cluster:
        cluster.import_image(image, {"dranet": DRIVERS / "dranet"})
        cluster.import_image(AGNHOST, {"bin/sleep": "/bin/busybox", "bin/ip": "/bin/busybox", "bin/ls": "/bin/busybox"})
        cluster.start()
        cluster.apply(install)
        cluster.run("apply", "-f", str(source / "tests/manifests/deviceclass.yaml"))

        def published():
            return [d["name"] for s in cluster.slices("dra.net") for d in s["spec"].get("devices", [])
                    if d["attributes"].get("dra.net/ifName", {}).get("string") == "given0"]
        driver = cluster.driver_pod("dranet")
        wait_until("the interface is published", published, 60)
        print("ok: installed", flush=True)

        def check(pod):
            link = cluster.inside(pod, "ip", "addr", "show", "eth99")
            assert "169.254.169.13/24" in link, link
            assert not on_host("given0")

        cluster.apply(claim)
        wait_until("the example runs", lambda: cluster.is_running("pod1"), 90)
        check("pod1")

        def network_data():
            status = cluster.get("resourceclaim", "dummy-interface-static-ip")["status"]
            return [d.get("networkData", {}).get("interfaceName") for d in status.get("devices", [])] == ["eth99"]
        wait_until("the claim tells the interface's name", network_data, 30)
        print("ok: the example has its interface", flush=True)

        cluster.kill()
        cluster.start()
        cluster.driver_pod("dranet")
        check("pod1")
        cluster.run("delete", "pod", "-n", "kube-system", driver["metadata"]["name"])
        wait_until("another driver pod runs",
                   lambda: cluster.driver_pod("dranet")["metadata"]["uid"] != driver["metadata"]["uid"], 60)
        check("pod1")
        print("ok: through restarts", flush=True)

        cluster.run("delete", "pod", "pod1")
        wait_until("the host has the interface again", lambda: on_host("given0"), 60)
        wait_until("the claim is free", lambda: "allocation" not in (
            cluster.get("resourceclaim", "dummy-interface-static-ip").get("status") or {}), 30)
        cluster.run("delete", "resourceclaim", "dummy-interface-static-ip")
        wait_until("it is published again", published, 90)
        cluster.apply(claim)
        wait_until("the example runs again", lambda: cluster.is_running("pod1"), 90)
        check("pod1")
        cluster.run("delete", "pod", "pod1")
        cluster.run("delete", "resourceclaim", "dummy-interface-static-ip")
        print("ok: given back and given again", flush=True)

        cluster.run("delete", "--ignore-not-found", "-f", "-", stdin=install)
        wait_until("the interfaces are gone", lambda: not cluster.slices("dra.net"), 90)
        print("ok: removed", flush=True)


if __name__ == "__main__":
    main()
