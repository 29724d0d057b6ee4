#!/usr/bin/env python3
"""`drakkar sanity` runs an API server and a driver of its own: it passes on our drivers, in C++ and C, also
when the driver is killed in between, and fails on what is no driver."""
import json
import pathlib
import subprocess
import sys


def sanity(drakkar, *arguments):
    return subprocess.run([drakkar, "sanity", "--timeout=10s", *arguments], capture_output=True, text=True,
                          check=False, timeout=120)


def main():
    drakkar, examples = sys.argv[1], pathlib.Path(sys.argv[2])
    flags = ["--kubeconfig={kubeconfig}", "--node-name={node}", "--registry-dir={registry}", "--cdi-dir={cdi}",
             "--pod-uid={pod-uid}"]
    drivers = {
        "sim.drakkar.io": [drakkar, "driver", *flags],
        "minimal.example.com": [examples / "driver-minimal", *flags],
        "c.example.com": [examples / "driver-c", *flags],
        "cnet.example.com": [examples / "driver-network-c", *flags, "--nri-socket=/nowhere/nri.sock",
                             "--enable-device-metadata"],
    }
    for name, command in drivers.items():
        result = sanity(drakkar, "-o", "json", "--", *map(str, command))
        assert result.returncode == 0, f"{name}: {result.stdout}\n{result.stderr}"
        report = json.loads(result.stdout)
        assert report["driver"] == name and report["failed"] == 0, report
        assert report["passed"] >= 20, report
        ids = {check["id"]: check["result"] for check in report["checks"]}
        assert ids["restart.prepared"] == "pass", ids
        assert ids["rolling.handover"] == ids["rolling.unprepare"] == "pass", ids
    table = sanity(drakkar, "--", *map(str, drivers["sim.drakkar.io"]))
    assert "prepare.concurrent" in table.stdout and "0 failed" in table.stdout, table.stdout
    without = sanity(drakkar, "--", *map(str, drivers["sim.drakkar.io"][:-1]))
    assert "the driver's command has no {pod-uid}" in without.stdout, without.stdout

    nothing = sanity(drakkar, "--timeout=1s", "--", "/bin/sleep", "30")
    assert nothing.returncode == 1 and "made no socket" in nothing.stderr, nothing.stderr
    ended = sanity(drakkar, "--", "/bin/true")
    assert ended.returncode == 1 and "ended before it registered" in ended.stderr, ended.stderr
    usage = sanity(drakkar, "--driver-socket=/nowhere.sock")
    assert usage.returncode == 1 and "--kubeconfig is needed" in usage.stderr, usage.stderr
    print("ok: sanity on", ", ".join(drivers))


if __name__ == "__main__":
    main()
