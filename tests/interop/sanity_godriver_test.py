#!/usr/bin/env python3
"""`drakkar sanity` with a Go driver, built on kubeletplugin as vendors build theirs."""
import json
import pathlib
import subprocess
import sys
import tempfile

from control_plane import build_go


def main():
    drakkar = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="drakkar-interop-") as work:
        binary = pathlib.Path(work) / "godriver"
        build_go("godriver", binary)
        plugins = pathlib.Path(work) / "plugins"
        plugins.mkdir()
        result = subprocess.run(
            [drakkar, "sanity", "-o", "json", "--", str(binary), "--kubeconfig={kubeconfig}", "--node-name={node}",
             "--registry-dir={registry}", f"--plugin-dir={plugins}", "--cdi-dir={cdi}", "--pod-uid={pod-uid}"],
            capture_output=True, text=True, check=False, timeout=200)
        assert result.stdout, result.stderr
        report = json.loads(result.stdout)
        for check in report["checks"]:
            print(check["result"].ljust(5), check["id"], check.get("why", ""))
        assert result.returncode == 0, result.stderr
        assert report["passed"] >= 20, report["passed"]
        passed = {check["id"] for check in report["checks"] if check["result"] == "pass"}
        assert {"rolling.beside", "rolling.handover", "rolling.unprepare"} <= passed, passed


if __name__ == "__main__":
    main()
