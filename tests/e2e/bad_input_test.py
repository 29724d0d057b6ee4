#!/usr/bin/env python3
"""Bad input gets one clear error and a non-zero exit status, and loses no data."""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

DRAKKAR = os.path.realpath(sys.argv[1])
failures = []


def run(*arguments, stdin=None, environment=None, timeout=30):
    return subprocess.run([DRAKKAR, *arguments], input=stdin, capture_output=True, text=True,
                          timeout=timeout, env={**os.environ, **(environment or {})}, check=False)


def expect(what, result, *parts):
    text = result.stderr.strip()
    problems = []
    if result.returncode == 0:
        problems.append("it succeeded")
    if len(text.splitlines()) != 1:
        problems.append(f"{len(text.splitlines())} lines instead of one")
    problems += [f"no word of {part!r}" for part in parts if part not in text]
    if problems:
        failures.append(f"{what}: {'; '.join(problems)}\n    {text}")
    else:
        print(f"ok: {what}: {text}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    expect("unknown command", run("gte", "pods"), "gte")
    expect("unknown flag", run("get", "pods", "--colour=red"), "colour")
    expect("bad gate", run("apiserver", "--feature-gates=Nonsense=true", "--data-dir=/nonexistent/x"),
           "Nonsense")
    expect("bad time", run("apiserver", "--event-ttl=0", "--data-dir=/nonexistent/x"), "--event-ttl", "1h0m0s")
    expect("bad event count", run("apiserver", "--max-events=none", "--data-dir=/nonexistent/x"), "--max-events",
           "none")
    expect("bad event bytes", run("apiserver", "--max-event-bytes=1e30", "--data-dir=/nonexistent/x"),
           "--max-event-bytes", "32Mi")
    expect("bad version", run("apiserver", "--emulated-version=9.99", "--data-dir=/nonexistent/x"), "9.99")
    with tempfile.TemporaryDirectory() as work:
        data = os.path.join(work, "data")
        port = free_port()
        log = open(os.path.join(work, "log"), "w")
        server = subprocess.Popen([DRAKKAR, "apiserver", f"--data-dir={data}", f"--port={port}"],
                                  stdout=log, stderr=log)
        try:
            kubeconfig = os.path.join(data, "admin.kubeconfig")
            environment = {"KUBECONFIG": kubeconfig}
            for _ in range(200):
                if os.path.exists(kubeconfig) and run("get", "namespaces", environment=environment).returncode == 0:
                    break
                time.sleep(0.05)
            expect("data directory in use", run("apiserver", f"--data-dir={data}", f"--port={free_port()}"),
                   "in use")
            expect("port taken", run("apiserver", f"--data-dir={work}/other", f"--port={port}"),
                   str(port), "in use")
            bad = os.path.join(work, "bad.yaml")
            pathlib.Path(bad).write_text("apiVersion: v1\nkind: Pod\nmetadata: [\n")
            expect("malformed manifest", run("apply", "-f", bad, environment=environment), "bad.yaml", "line")
            pathlib.Path(bad).write_text("apiVersion: v1\nkind: Spaceship\nmetadata: {name: x}\n")
            expect("unknown kind", run("apply", "-f", bad, environment=environment), "Spaceship")
            pathlib.Path(bad).write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ncolour: red\n")
            expect("unknown field", run("apply", "-f", bad, environment=environment), "colour")
            expect("not there", run("get", "pod", "nobody", environment=environment), "nobody", "not found")
            expect("unknown type", run("get", "spaceships", environment=environment), "spaceships")
            # An acknowledged write survives a kill.
            good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept}\ndata: {a: b}\n"
            if run("apply", "-f", "-", stdin=good, environment=environment).returncode != 0:
                failures.append("apply of a good manifest failed")
            server.send_signal(signal.SIGKILL)
            server.wait()
            server = subprocess.Popen([DRAKKAR, "apiserver", f"--data-dir={data}", f"--port={port}"],
                                      stdout=log, stderr=log)
            for _ in range(200):
                kept = run("get", "configmap", "kept", "-o", "jsonpath={.data.a}", environment=environment)
                if kept.returncode == 0:
                    break
                time.sleep(0.05)
            if kept.stdout.strip() != "b":
                failures.append(f"an acknowledged write was lost: {kept.stdout} {kept.stderr}")
            else:
                print("ok: an acknowledged write survives SIGKILL")
        finally:
            server.terminate()
            server.wait(timeout=20)
            log.close()
    expect("no server", run("get", "pods", environment={"KUBECONFIG": kubeconfig}), "kubeconfig")
    for failure in failures:
        print("FAILED:", failure)
    print(f"{len(failures)} problems")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
