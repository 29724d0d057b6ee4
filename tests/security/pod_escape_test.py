#!/usr/bin/env python3
"""Pods that try to escape their container: through links in volumes, chosen paths, the log, and oversized
files. Real runc, one node."""
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from parts import Parts, skip_without_containers, wait_until  # noqa: E402

IMAGE = "localhost/busybox:latest"


def pod(name, containers, init="", volumes="[{name: v, emptyDir: {}}]", more=""):
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  terminationGracePeriodSeconds: 0
  restartPolicy: Never
  volumes: {volumes}
{more}
  {"initContainers:" if init else ""}
{init}
  containers:
{containers}
"""


def container(name, script, mounts="", more=""):
    return f"""
  - name: {name}
    image: {IMAGE}
    command: [sh, -c, '{script}']
    volumeMounts: [{mounts}]
{more}
"""


def finish(parts, name, phase="Succeeded", seconds=30):
    parts.wait_phase(name, phase, seconds)
    return parts.run("logs", name, check=False)


def links_in_a_volume_lead_nowhere_else(parts, host):
    """An init container plants links; the next one mounts them by subPath."""
    plant = container("plant", f"ln -s / /v/root; ln -s {host} /v/host; ln -s ../../../../../../../../.. /v/up; "
                               f"ln -s /proc/1/root /v/magic; mkdir /v/d; ln -s / /v/d/deep; touch /v/own",
                      "{name: v, mountPath: /v}")
    look = 'find /m -maxdepth 3 -name secret | grep . && echo ESCAPED; ls /m; cat /m/secret; echo done'
    for name, sub in (("root", "root"), ("deep", "d/deep"), ("up", "up")):
        parts.apply(pod(f"link-{name}", container("c", look, f"{{name: v, mountPath: /m, subPath: {sub}}}"), plant))
        text = finish(parts, f"link-{name}")
        assert "own" in text.split() and "done" in text, (name, text)
        assert "ESCAPED" not in text and "the host" not in text and "etc" not in text.split(), (name, text)
    # If a link has no target in the volume, the container does not start, with a reason.
    for name in ("host", "magic"):
        parts.apply(pod(f"link-{name}", container("c", look, f"{{name: v, mountPath: /m, subPath: {name}}}"), plant))
        waiting = wait_until("the container is refused", lambda: refusal(parts, f"link-{name}"))
        assert waiting["reason"] == "CreateContainerConfigError" and f'subPath "{name}"' in waiting["message"], waiting
        parts.delete_pod(f"link-{name}", 20)
    # The same through a variable, with a link in the middle of the path, and with a path to be created.
    parts.apply(pod("link-expr", container("c", look, "{name: v, mountPath: /m, subPathExpr: $(WHERE)/new}",
                                           "    env: [{name: WHERE, value: d/deep}]"), plant))
    text = finish(parts, "link-expr")
    assert "done" in text and "ESCAPED" not in text, text
    # The volume is removed, but the host's files are not.
    for name in ("link-root", "link-deep", "link-up", "link-expr"):
        parts.delete_pod(name, 20)
    assert (host / "secret").read_text() == "the host's\n"
    assert pathlib.Path("/etc/passwd").exists()


def refusal(parts, name):
    for status in (parts.get("pod", name) or {}).get("status", {}).get("containerStatuses", []):
        if status["state"].get("waiting", {}).get("reason") not in (None, "PodInitializing", "ContainerCreating"):
            return status["state"]["waiting"]
    return None


def a_link_that_is_swapped_all_the_time_leads_nowhere_else(parts, host):
    """One container swaps a directory with a link to the host while another is started with it repeatedly."""
    swap = container("swap", f"cd /v; mkdir d; ln -s {host} l; while :; do mv -T d t; mv -T l d; mv -T d l; mv -T t d; done",
                     "{name: v, mountPath: /v}")
    look = container("look", "if [ -e /m/secret ]; then echo ESCAPED; fi; exit 1",
                     "{name: v, mountPath: /m, subPath: d}")
    manifest = pod("race", swap + look).replace("restartPolicy: Never", "restartPolicy: Always")
    for _ in range(3):
        parts.apply(manifest)
        wait_until("it has run or was refused", lambda: refusal(parts, "race"), 40)
        assert "ESCAPED" not in parts.run("logs", "race", "-c", "look", check=False)
        parts.delete_pod("race", 30)
    assert (host / "secret").read_text() == "the host's\n"


def directories_to_work_in_are_the_containers_own(parts):
    """Files that the runtime had open must not be reachable from the container's working directory."""
    for number in range(3, 12):
        name = f"cwd-{number}"
        parts.apply(pod(name, container("c", "ls -d ../../../../../../../../../../sys/firmware/.. >/dev/null; "
                                             "ls ../../../../../../../../../../../..", more=f"    workingDir: /proc/self/fd/{number}"),
                        volumes="[]"))
        wait_until("it has ended one way or the other", lambda: parts.phase(name) in ("Succeeded", "Failed")
                   or refusal(parts, name), 30)
        assert "boot" not in parts.run("logs", name, check=False).split()
        parts.delete_pod(name, 20)


def files_that_are_too_much_are_not_read(parts):
    parts.apply(pod("sparse", container("c", "truncate -s 8T /dev/termination-log; exit 1"), volumes="[]"))
    finish(parts, "sparse", "Failed")
    state = parts.get("pod", "sparse")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert len(state.get("message", "")) <= 4096, len(state["message"])
    parts.delete_pod("sparse", 20)
    doubling = "".join(f"\n    - {{name: V{i}, value: $(V{i - 1})$(V{i - 1})}}" for i in range(1, 40))
    parts.apply(pod("doubling", container("good", "echo fine; sleep 1000") +
                    container("bad", "true", more="    env:\n    - {name: V0, value: x}" + doubling), volumes="[]"))
    waiting = wait_until("the container is refused", lambda: refusal(parts, "doubling"))
    assert waiting["reason"] == "CreateContainerConfigError" and "more than" in waiting["message"], waiting
    wait_until("the other one runs", lambda: "fine" in parts.run("logs", "doubling", "-c", "good", check=False))
    parts.delete_pod("doubling", 20)


def deep_directories_go_with_their_pod(parts):
    parts.apply(pod("deep", container("c", "cd /v; i=0; while [ $i -lt 2500 ]; do mkdir dddddddd && cd dddddddd; i=$((i+1)); "
                                           "done; touch f; echo made $i", "{name: v, mountPath: /v}")))
    assert "made 2500" in finish(parts, "deep", seconds=60)
    uid = parts.get("pod", "deep")["metadata"]["uid"]
    parts.delete_pod("deep", 30)
    wait_until("its files are gone", lambda: not (parts.root / "pods" / uid).exists())


def main():
    skip_without_containers()
    with Parts(sys.argv[1]) as parts:
        host = parts.work / "host"
        host.mkdir()
        (host / "secret").write_text("the host's\n")
        parts.start_control_plane("--log-level=warning")
        parts.start_node("--log-level=warning")
        for attack in (lambda: links_in_a_volume_lead_nowhere_else(parts, host),
                       lambda: a_link_that_is_swapped_all_the_time_leads_nowhere_else(parts, host),
                       lambda: directories_to_work_in_are_the_containers_own(parts),
                       lambda: files_that_are_too_much_are_not_read(parts),
                       lambda: deep_directories_go_with_their_pod(parts)):
            begun = time.monotonic()
            attack()
            print(f"withstood in {time.monotonic() - begun:.1f} s", flush=True)
        wait_until("every mount of a volume went with its pod",
                   lambda: str(parts.root / "pods") not in pathlib.Path("/proc/self/mountinfo").read_text())
        assert parts.processes["node"].poll() is None and parts.processes["apiserver"].poll() is None
        print("ok")


if __name__ == "__main__":
    main()
