#!/usr/bin/env python3
"""Volumes, groups, profiles and limits hold in real containers, also for pods that exceed them."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from pod_escape_test import container, finish, pod  # noqa: E402
from parts import Parts, skip_without_containers, wait_until  # noqa: E402


def memory_volumes_are_shared_and_survive_restarts(parts):
    volumes = "[{name: m, emptyDir: {medium: Memory, sizeLimit: 1Mi}}, {name: v, emptyDir: {}}]"
    first = container("first", "if [ -f /m/sub/kept ]; then echo kept; exec sleep 1000; fi; "
                               "mkdir -p /m/sub; echo x > /m/sub/kept; "
                               "dd if=/dev/zero of=/m/big bs=64k count=64 2>/dev/null || echo full; exit 1",
                      "{name: m, mountPath: /m}")
    second = container("second", "until [ -f /s/kept ]; do sleep 0.1; done; grep tmpfs /proc/mounts | grep /s; "
                                 "echo shared; exec sleep 1000", "{name: m, mountPath: /s, subPath: sub}")
    manifest = pod("memory", first + second, volumes=volumes).replace("restartPolicy: Never", "restartPolicy: Always")
    parts.apply(manifest)
    wait_until("the second container sees the file",
               lambda: "shared" in parts.run("logs", "memory", "-c", "second", check=False), 40)
    wait_until("the file survived the restart of the first",
               lambda: "kept" in parts.run("logs", "memory", "-c", "first", check=False), 60)
    mounts = pathlib.Path("/proc/self/mountinfo").read_text()
    uid = parts.get("pod", "memory")["metadata"]["uid"]
    assert mounts.count(f"{uid}/volumes/kubernetes.io~empty-dir/m ") == 1, "one tmpfs for all containers"
    parts.delete_pod("memory", 30)
    wait_until("it is unmounted", lambda: uid not in pathlib.Path("/proc/self/mountinfo").read_text())


def groups_own_volumes(parts):
    more = "  securityContext: {runAsUser: 1000, runAsGroup: 3000, fsGroup: 2000}"
    volumes = "[{name: v, emptyDir: {}}, {name: m, emptyDir: {medium: Memory}}, " \
              "{name: d, downwardAPI: {defaultMode: 256, items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}]"
    parts.apply(pod("groups", container("c", "stat -L -c %g-%a /v /m /d/name; touch /v/f /m/f; stat -c %g /v/f /m/f; "
                                             "cat /d/name; echo; id -G",
                                        "{name: v, mountPath: /v}, {name: m, mountPath: /m}, {name: d, mountPath: /d}"),
                    volumes=volumes, more=more))
    lines = finish(parts, "groups").splitlines()
    assert lines[:3] == ["2000-2777", "2000-2777", "2000-440"], lines
    assert lines[3:6] == ["2000", "2000", "groups"], lines
    assert "2000" in lines[6].split(), lines
    parts.delete_pod("groups", 20)


def a_missing_host_path_becomes_a_directory(parts):
    path = parts.work / "made/by/a/pod"
    parts.apply(pod("host-path", container("c", "echo x > /h/f", "{name: h, mountPath: /h}"),
                    volumes=f"[{{name: h, hostPath: {{path: {path}}}}}]"))
    finish(parts, "host-path")
    assert (path / "f").read_text() == "x\n"
    parts.delete_pod("host-path", 20)
    assert (path / "f").exists(), "a hostPath stays"


def profiles_are_applied(parts):
    look = "grep Seccomp: /proc/self/status; unshare -U true 2>&1 && echo unshared; mkdir /x && echo made"
    profile = parts.root / "seccomp"
    profile.mkdir(exist_ok=True)
    (profile / "p.json").write_text('{"defaultAction":"SCMP_ACT_ALLOW","syscalls":'
                                    '[{"names":["mkdir","mkdirat"],"action":"SCMP_ACT_ERRNO"}]}')
    cases = (("", "", "0", True), ("Unconfined", "", "0", True), ("RuntimeDefault", "", "2", True),
             ("Localhost", ", localhostProfile: p.json", "2", False))
    for kind, more, mode, made in cases:
        name = "profile-" + (kind.lower() or "none")
        context = f"  securityContext: {{seccompProfile: {{type: {kind}{more}}}}}" if kind else ""
        parts.apply(pod(name, container("c", look + "; true"), volumes="[]", more=context))
        text = finish(parts, name)
        assert f"Seccomp:\t{mode}" in text, (name, text)
        assert ("made" in text) == made, (name, text)
        if kind == "RuntimeDefault":
            assert "unshared" not in text, text
        parts.delete_pod(name, 20)


def processes_are_bounded(parts):
    # Each child waits; the shell reports when it cannot fork.
    parts.apply(pod("pids", container("c", "i=0; while [ $i -lt 200 ]; do sleep 1000 & i=$((i+1)); done; echo made all"),
                    volumes="[]"))
    wait_until("it was refused", lambda: "fork" in parts.run("logs", "pids", check=False).lower(), 30)
    assert "made all" not in parts.run("logs", "pids", check=False)
    parts.delete_pod("pids", 20)


def volumes_that_outgrow_their_limit_end_their_pod(parts):
    parts.apply(pod("grows", container("c", "dd if=/dev/zero of=/v/f bs=1M count=3 2>/dev/null; sleep 1000",
                                       "{name: v, mountPath: /v}"),
                    volumes="[{name: v, emptyDir: {sizeLimit: 1Mi}}]"))
    finish(parts, "grows", "Failed", 60)
    status = parts.get("pod", "grows")["status"]
    assert status["reason"] == "Evicted", status
    assert status["message"] == 'Usage of EmptyDir volume "v" exceeds the limit "1Mi". ', status
    parts.delete_pod("grows", 20)


def logs_stay_within_their_bound(parts):
    parts.apply(pod("loud", container("c", "yes 0123456789012345678901234567890123456789012345678901234567890123456789"),
                    volumes="[]"))
    parts.wait_phase("loud", "Running", 20)
    uid = parts.get("pod", "loud")["metadata"]["uid"]
    directory = parts.node_data / "logs" / f"default_loud_{uid}" / "c"

    def sizes():
        found = []
        for name in os.listdir(directory):
            try:
                found.append((directory / name).stat().st_size)
            except FileNotFoundError:
                pass  # just rotated away
        return found
    largest = 0

    def rotated_often():
        nonlocal largest
        now = sizes()
        largest = max(largest, sum(now))
        return len(now) >= 5
    wait_until("it was rotated until the oldest went", rotated_often, 120)
    assert len(sizes()) <= 6 and largest <= 5 * (128 << 20), (sizes(), largest)
    parts.delete_pod("loud", 30)
    print(f"the logs had {largest >> 20} MiB at most")


def isolation_that_is_not_there_is_not_pretended(parts):
    for name, more, reason in (("users", "  hostUsers: false", "UserNamespacesUnsupported"),
                               ("armor", "  securityContext: {appArmorProfile: {type: RuntimeDefault}}", "AppArmor")):
        parts.apply(pod(name, container("c", "true"), volumes="[]", more=more))
        wait_until("the pod is refused", lambda: parts.phase(name) == "Failed")
        status = parts.get("pod", name)["status"]
        assert status["reason"] == reason and status["message"].startswith("Pod was rejected: "), status
        parts.delete_pod(name, 20)


def main():
    skip_without_containers()
    with Parts(sys.argv[1]) as parts:
        parts.start_control_plane("--log-level=warning")
        parts.start_node("--log-level=warning", "--pod-pids-limit=100")
        for check in (memory_volumes_are_shared_and_survive_restarts, groups_own_volumes,
                      a_missing_host_path_becomes_a_directory, profiles_are_applied, processes_are_bounded,
                      isolation_that_is_not_there_is_not_pretended, volumes_that_outgrow_their_limit_end_their_pod,
                      logs_stay_within_their_bound):
            check(parts)
            print(check.__name__, flush=True)
        print("ok")


if __name__ == "__main__":
    main()
