#!/usr/bin/env python3
"""Our SDK's driver with a kubelet stand-in in Go that uses Kubernetes' own generated clients."""
import subprocess
import sys

from control_plane import CLAIM, NODE, ControlPlane, build_go, wait_until


def main():
    drakkar = sys.argv[1]
    with ControlPlane(drakkar) as plane:
        binary = plane.work / "gokubelet"
        build_go("gokubelet", binary)
        assert plane.run("apply", "-f", "-", stdin=NODE), plane.error
        registry = plane.work / "plugins_registry"
        plane.spawn([drakkar, "driver", f"--kubeconfig={plane.kubeconfig}", "--node-name=n1",
                     f"--registry-dir={registry}", f"--cdi-dir={plane.work / 'cdi'}"])
        wait_until("devices are published", lambda: plane.run("get", "resourceslices", "-o", "name").strip())
        assert plane.run("apply", "-f", "-", stdin=CLAIM % {"driver": "sim.drakkar.io"}), plane.error
        claim = wait_until("the claim is allocated", lambda: (
            lambda c: c if c.get("status", {}).get("allocation") else None)(plane.get("resourceclaim", "claim")))
        result = subprocess.run([binary, f"-registrar={registry / 'sim.drakkar.io-reg.sock'}", "-driver=sim.drakkar.io",
                                 f"-claim=default/claim/{claim['metadata']['uid']}"],
                                capture_output=True, text=True, check=False, timeout=60)
        print(result.stdout, result.stderr)
        assert result.returncode == 0
        assert not list((plane.work / "cdi").glob("*.json")), "unprepare leaves no CDI spec"


if __name__ == "__main__":
    main()
