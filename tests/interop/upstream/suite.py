#!/usr/bin/env python3
"""Runs Kubernetes' own end-to-end tests against `drakkar up` on this machine and says, per area, how many passed and why
the others failed. Every spec is a process of its own with a time limit. Needs `./dev peers upstream`, root, runc, conmon
and Debian's containernetworking-plugins.

usage: suite.py DRAKKAR [AREA...] [--focus REGEX] [--skip REGEX] [--peers DIR] [--parallel N] [--limit SECONDS]
                [--report DIR] [--keep] [--up FLAG]... [--kubeconfig FILE] [--repeat-failed FILE]
AREA: api-machinery, auth, scheduling, apps, node, storage, network, cli, instrumentation (their [Conformance] specs), dra"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "e2e"))
sys.path.insert(0, str(HERE))
from cluster import ROOT, free_port, remove_work, wait_until  # noqa: E402
from images import Maker  # noqa: E402

CONFORMANCE = ["api-machinery", "auth", "scheduling", "apps", "node", "storage", "network", "cli", "instrumentation",
               "architecture"]
AREAS = {name: rf"^\[sig-{name}\].*\[Conformance\]" for name in CONFORMANCE}
AREAS["dra"] = r"\[DRA\]|^\[sig-node\] DRA "
# All of the DRA features, also those that are off by default.
GATES = ["DRAAdminAccess", "DRAConsumableCapacity", "DRADerivedAttributes", "DRADeviceBindingConditions",
         "DRADeviceCompatibilityGroups", "DRADeviceTaintRules", "DRADeviceTaints", "DRAExtendedResource",
         "DRAListTypeAttributes", "DRAOptionalNodeOperations", "DRAPartitionableDevices", "DRAPrioritizedList",
         "DRAResourceClaimDeviceStatus", "DRAResourcePoolStatus", "DRAPartitionableDevicesType"]


def node_port():
    """The tests ask nodes at this port, if it is free."""
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", 10250))
            return 10250
        except OSError:
            return free_port()


class Up:
    """A `drakkar up` with the images of the tests and a network for its pods."""

    def __init__(self, drakkar, images, flags):
        # Short, because drivers make sockets with long names below it.
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="du-", dir="/tmp"))
        self.data = self.work / "data"
        self.kubeconfig = self.data / "admin.kubeconfig"
        self.log = self.work / "up.log"
        self.drakkar = drakkar
        for archive in sorted(images.glob("*.tar")):
            subprocess.run([drakkar, "image", "import", f"--data-dir={self.data}", str(archive)], check=True,
                           stdout=subprocess.DEVNULL)
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [drakkar, "up", f"--data-dir={self.data}", f"--port={free_port()}", f"--node-port={node_port()}",
                 "--node-name=n1", *flags], stdout=log, stderr=log, cwd=ROOT)

        def node_ready():
            if self.process.poll() is not None:
                raise SystemExit(f"drakkar up ended: {self.log.read_text()[-2000:]}")
            got = subprocess.run([drakkar, "get", "nodes", "n1", "-o", "json"], capture_output=True, text=True, check=False,
                                 env=dict(os.environ, KUBECONFIG=str(self.kubeconfig)))
            if got.returncode != 0:
                return False
            conditions = json.loads(got.stdout).get("status", {}).get("conditions", [])
            return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
        wait_until("the node is ready", node_ready, 120)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        subprocess.run([self.drakkar, "down", f"--data-dir={self.data}"], check=False, capture_output=True)


class Suite:
    def __init__(self, program, kubeconfig, kubectl, node_data, report):
        self.program = program
        self.flags = [f"--kubeconfig={kubeconfig}", f"--kubectl-path={kubectl}", f"--kubelet-root-dir={node_data}",
                      "--provider=local", "--ginkgo.no-color", "--ginkgo.v", "--disable-log-dump=true",
                      "--node-os-distro=custom", "--allowed-not-ready-nodes=0", "--minStartupPods=0"]
        self.report = report
        report.mkdir(parents=True, exist_ok=True)

    def list_specs(self):
        out = self.report / "specs.json"
        subprocess.run([self.program, *self.flags, "--ginkgo.dry-run", f"--ginkgo.json-report={out}"],
                       capture_output=True, check=True)
        specs = []
        for spec in json.loads(out.read_text())[0]["SpecReports"]:
            if spec["LeafNodeType"] == "It":
                specs.append(" ".join([*(spec["ContainerHierarchyTexts"] or []), spec["LeafNodeText"]]))
        return sorted(specs)

    def run(self, spec, limit):
        """Returns (state, reason)."""
        stem = re.sub(r"[^A-Za-z0-9]+", "-", spec)[:120]
        log, out = self.report / f"{stem}.log", self.report / f"{stem}.json"
        out.unlink(missing_ok=True)
        # Ginkgo's own limit lets the spec clean up; ours is for one that does not.
        command = [self.program, *self.flags, f"--ginkgo.focus={go_quote(spec)}", f"--ginkgo.timeout={limit}s",
                   "--ginkgo.grace-period=20s", f"--ginkgo.json-report={out}"]
        with open(log, "w", encoding="utf-8") as file:
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=self.report)
            try:
                process.wait(limit + 120)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        try:
            reports = json.loads(out.read_text())[0]["SpecReports"]
        except (OSError, ValueError):
            return "failed", f"no report: {last_line(log)}"
        for report in reports:
            if report["State"] in ("passed", "skipped", "pending") and report["LeafNodeType"] == "It":
                name = " ".join([*(report["ContainerHierarchyTexts"] or []), report["LeafNodeText"]])
                if name == spec:
                    message = report.get("Failure", {}).get("Message", "")
                    return report["State"], message.strip().splitlines()[0] if message.strip() else ""
            if "Failure" in report and report["State"] not in ("passed", "skipped", "pending"):
                lines = [line.strip() for line in report["Failure"].get("Message", "").splitlines() if line.strip()]
                return "failed", " / ".join(lines[:3])[:300]
        return "failed", "the spec did not run"


def go_quote(text):
    """As a regular expression of Go's that matches the whole text of the spec."""
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text) + "$"


def last_line(path):
    lines = path.read_text(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "no output"


def run_specs(suite, specs, options):
    """Those that may run beside others first, then the others one by one."""
    results = {}

    def one(spec):
        started = time.monotonic()
        results[spec] = suite.run(spec, options.limit)
        state, reason = results[spec]
        print(f"{state.upper():8}{time.monotonic() - started:5.0f}s {spec}" + (f"\n         {reason}" if reason else ""),
              flush=True)
    with concurrent.futures.ThreadPoolExecutor(options.parallel) as pool:
        list(pool.map(one, [spec for spec in specs if "[Serial]" not in spec]))
    for spec in specs:
        if "[Serial]" in spec:
            one(spec)
    return results


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("drakkar")
    parser.add_argument("areas", nargs="*")
    parser.add_argument("--focus")
    parser.add_argument("--skip")
    parser.add_argument("--peers", default=ROOT / "build/peers", type=pathlib.Path)
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--limit", type=int, default=240)
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--up", action="append", default=[])
    parser.add_argument("--kubeconfig", type=pathlib.Path, help="of a running `drakkar up`, in its data directory")
    parser.add_argument("--repeat-failed", type=pathlib.Path, help="the results.json of an earlier run")
    options = parser.parse_args()
    programs = options.peers.resolve() / "upstream"
    if not (programs / "e2e.test").exists():
        print("skipped: needs `./dev peers upstream`")
        raise SystemExit(77)
    areas = options.areas or ([] if options.focus or options.repeat_failed else list(AREAS))
    for area in areas:
        if area not in AREAS:
            raise SystemExit(f"unknown area {area}; known: {', '.join(AREAS)}")
    images = programs / "images"
    Maker(options.peers.resolve(), images).make_all()
    up = None
    if not options.kubeconfig:
        up = Up(os.path.realpath(options.drakkar), images,
                [f"--feature-gates={','.join(f'{gate}=true' for gate in GATES)}", *options.up])
        print(f"kubeconfig: {up.kubeconfig}", flush=True)
    kubeconfig = options.kubeconfig or up.kubeconfig
    report = options.report or pathlib.Path(tempfile.mkdtemp(prefix="drakkar-upstream-report-"))
    suite = Suite(programs / "e2e.test", kubeconfig, programs / "kubectl", pathlib.Path(kubeconfig).parent / "kubelet",
                  report.resolve())
    try:
        specs = suite.list_specs()
        chosen = {"focus": [spec for spec in specs if options.focus and re.search(options.focus, spec)],
                  **{area: [spec for spec in specs if re.search(AREAS[area], spec)] for area in areas}}
        if options.repeat_failed:
            before = json.loads(options.repeat_failed.read_text())
            chosen["repeated"] = [spec for spec in specs if before.get(spec, ["passed"])[0] == "failed"]
        if areas and options.focus:
            chosen = {area: [spec for spec in chosen[area] if spec in chosen["focus"]] for area in areas}
        all_results, summary = {}, []
        for area, wanted in chosen.items():
            wanted = [spec for spec in wanted if not (options.skip and re.search(options.skip, spec))]
            if not wanted:
                continue
            results = run_specs(suite, wanted, options)
            all_results.update(results)
            count = {state: sum(1 for each, _ in results.values() if each == state) for state in ("passed", "failed", "skipped")}
            summary.append(f"{area}: {count['passed']}/{count['failed']}/{count['skipped']}")
            print(f"== {summary[-1]} (passed/failed/skipped)", flush=True)
            for spec, (state, reason) in sorted(results.items()):
                if state == "failed":
                    print(f"   {spec}\n      {reason}", flush=True)
            (report / "results.json").write_text(json.dumps(all_results, indent=1))
        print("\n".join(summary))
        print(f"logs: {report}")
    finally:
        if up and options.keep:
            print(f"still running: {up.process.pid}, {up.work}")
        elif up:
            up.stop()
            remove_work(up.work)


if __name__ == "__main__":
    main()
