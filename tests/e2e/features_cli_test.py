#!/usr/bin/env python3
"""drakkar features and drakkar simulate as the author of an autoscaler uses them."""
import json
import pathlib
import subprocess
import sys
import tempfile

NODE = """apiVersion: v1
kind: Node
metadata: {name: template}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "110"}%s}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: template-gpus}
spec:
  driver: gpu.example.com
  nodeName: template
  pool: {name: template, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {model: {string: big}}}
  - {name: gpu-1, attributes: {model: {string: small}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
"""
POD = """apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  restartPolicy: Never
  containers:
  - name: c
    image: i
    resources: {claims: [{name: gpu}], requests: {cpu: %s}}
    restartPolicy: Never
    restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec:
  spec:
    devices:
      requests:
      - name: r
        exactly:
          deviceClassName: gpu
          count: %d
          selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].model == "small"'}}]
"""
HOST_USERS = """apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  hostNetwork: true
  hostUsers: false
  containers: [{name: c, image: i}]
"""
FEATURE = "RestartAllContainersOnContainerExits"


def main():
    drakkar = sys.argv[1]
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)

        def write(name, text):
            (work / name).write_text(text)
            return str(work / name)

        def run(*words, code=0):
            first = subprocess.run([drakkar, *words], capture_output=True, text=True, check=False)
            again = subprocess.run([drakkar, *words], capture_output=True, text=True, check=False)
            assert first.returncode == code, (words, first)
            assert (first.stdout, first.stderr) == (again.stdout, again.stderr), "equal input, equal bytes"
            return first.stdout + first.stderr

        declares = write("declares.yaml", NODE % f", declaredFeatures: [{FEATURE}]")
        silent = write("silent.yaml", NODE % "")
        pod = write("pod.yaml", POD % ("1", 1))
        kubelet = write("kubelet.yaml", "kind: KubeletConfiguration\nfeatureGates: {%s: false}\n" % FEATURE)

        pod_only = write("pod-only.yaml", (POD % ("1", 1)).split("---")[0])
        why = run("features", "require", "-f", pod_only, "--why")
        assert why == f"{FEATURE}: spec.containers[0].restartPolicyRules[0].action\n", why
        assert FEATURE in run("features", "discover", "--version", "1.36")
        assert FEATURE not in run("features", "discover", "--kubelet-config", kubelet)
        assert FEATURE in run("features", "discover", "--kubelet-config", kubelet,
                              "--feature-gates", f"{FEATURE}=true"), "flags win over the file"
        assert "does not have NodeDeclaredFeatures" in run("features", "discover", "--version", "1.34")
        assert "feature gate: UserNamespacesHostNetworkSupport\nruntime feature: UserNamespacesHostNetwork" in run(
            "features", "needs", "UserNamespacesHostNetworkSupport")
        assert f"did you mean {FEATURE}?" in run("features", "needs", FEATURE[:-1], code=1)

        fits = run("simulate", "--node-template", declares, "-f", pod)
        assert fits == ("fits: pod default/p would run on node template\n"
                        "  claim p-gpu, request r: gpu.example.com/template/gpu-1\n"), fits
        answer = json.loads(run("simulate", "--node-template", declares, "-f", pod, "-o", "json"))
        assert answer["fits"] and answer["devices"][0]["device"] == "gpu-1", answer
        assert f"1 node(s) did not match node declared features: {FEATURE}" in run(
            "simulate", "--node-template", silent, "-f", pod, code=1)
        # The declared features can be computed from the node configuration.
        assert "fits:" in run("simulate", "--node-template", silent, "-f", pod, "--version", "1.37")
        assert "did not match" in run("simulate", "--node-template", declares, "-f", pod,
                                      "--kubelet-config", kubelet, code=1)
        assert "Insufficient cpu" in run("simulate", "--node-template", declares, "-f",
                                         write("big.yaml", POD % ("64", 1)), code=1)
        assert "cannot allocate all claims" in run("simulate", "--node-template", declares, "-f",
                                                   write("many.yaml", POD % ("1", 2)), code=1)
        # The same configuration in a kubelet and in our own agent, which implements fewer features.
        host = write("host.yaml", HOST_USERS)
        on = "UserNamespacesHostNetworkSupport=true"
        described = ["--scheduler-feature-gates", on, "--feature-gates", on, "--runtime-features", "UserNamespacesHostNetwork"]
        for template in (silent, declares):
            for agent in ([], ["--agent", "kubelet"]):
                assert "fits:" in run("simulate", "--node-template", template, "-f", host, *described, *agent)
            assert "1 node(s) did not match node declared features: UserNamespacesHostNetworkSupport." in run(
                "simulate", "--node-template", template, "-f", host, *described, "--agent", "drakkar", code=1)
            # --agent alone describes the node with its defaults, whatever the template declares.
            for agent in ("kubelet", "drakkar"):
                assert "fits:" in run("simulate", "--node-template", template, "-f", pod, "--agent", agent)
        assert "did not match" in run("simulate", "--node-template", declares, "-f", pod, "--agent", "drakkar",
                                      "--feature-gates", f"{FEATURE}=false", code=1)
        # Mistakes: one error each, which says what is wrong and where.
        def complains(sentence, *words, code=1):
            output = run(*words, code=code)
            assert output == f"error: {sentence}\n", (words, output)

        complains('--agent must be kubelet or drakkar, not "cri-o"', "simulate", "--node-template", declares, "-f", pod,
                  "--agent", "cri-o", code=2)
        broken = write("broken.yaml", "a: [1\nb: {")
        complains(f"open {work}/none: No such file or directory", "features", "discover", "--kubelet-config", f"{work}/none")
        complains(f'the path "{work}/none" does not exist', "features", "require", "-f", f"{work}/none")
        assert f"{broken}: " in run("features", "discover", "--kubelet-config", broken, code=1)
        assert f"{broken}: document 1, line " in run("features", "require", "-f", broken, code=1)
        complains('version "banana" is invalid; use for example 1.37 or 1.37.2', "features", "discover", "--version", "banana")
        complains('version "1" is invalid; use for example 1.37 or 1.37.2', "features", "require", "-f", pod_only, "--version", "1")
        complains('version "x" is invalid; use for example 1.37 or 1.37.2', "simulate", "--node-template", declares, "-f", pod,
                  "--version", "x", code=2)
        complains("feature 'Nope' not registered; `drakkar features needs` lists the known ones", "features", "needs", "Nope")
        for command in (["features", "discover"], ["simulate", "--node-template", declares, "-f", pod]):
            assert "note: feature gate Foo is unknown; no feature depends on it\n" in run(*command, "--feature-gates", "Foo=true")
        complains(f"{pod_only}: kind is \"Pod\", but must be KubeletConfiguration", "features", "discover",
                  "--kubelet-config", pod_only)
        wrong = write("wrong.yaml", "kind: KubeletConfiguration\nfeatureGates: [a]\n")
        complains(f"{wrong}: featureGates must be a map of names to true or false", "features", "discover",
                  "--kubelet-config", wrong)
        complains('unknown runtime feature "Nope"; must be MountOptions or UserNamespacesHostNetwork', "features",
                  "discover", "--runtime-features", "Nope")
        complains('feature gate A must be true or false, not "maybe"', "features", "discover",
                  "--feature-gates", "A=maybe")
        typo = write("typo.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {hostUsrs: false}\n")
        complains(f'{typo}: document 1, line 4: unknown field "spec.hostUsrs" in Pod', "features", "require", "-f", typo)
        assert "no Pod found" in run("simulate", "--node-template", declares, "-f", declares, code=2)
        assert "--node-template is required" in run("simulate", "-f", pod, code=2)
        assert "is not in the given files" in run("simulate", "--node-template", declares, "-f",
                                                str(work / "pod-only.yaml"), code=2)
        assert "neither status.allocatable nor" in run(
            "simulate", "--node-template", write("empty.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: node-0}\n"),
            "-f", pod, code=2)
    print("ok: features and simulate answer as they should")


if __name__ == "__main__":
    main()
