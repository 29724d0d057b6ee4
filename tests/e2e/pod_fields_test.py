#!/usr/bin/env python3
"""postStart, hostAliases and service account tokens in a real container, with API server and node as separate processes."""
import base64
import json
import sys

from parts import Parts, skip_without_containers, wait_until

MANIFEST = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: words}
data: {word: hello}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  serviceAccountName: robot
  terminationGracePeriodSeconds: 0
  hostAliases:
  - {ip: 10.1.2.3, hostnames: [db, db.local]}
  volumes:
  - name: out
    emptyDir: {}
  - name: identity
    projected:
      sources:
      - serviceAccountToken: {path: token, audience: vault, expirationSeconds: 700}
      - configMap: {name: words}
  containers:
  - name: c
    image: localhost/busybox:latest
    command: [sh, -c, "until [ -f /out/done ]; do sleep 0.05; done; cat /out/hosts; echo; cat /id/token; echo; cat /id/word; exec sleep 1000"]
    lifecycle:
      postStart: {exec: {command: [sh, -c, "cp /etc/hosts /out/hosts && touch /out/done"]}}
    volumeMounts:
    - {name: out, mountPath: /out}
    - {name: identity, mountPath: /id}
"""


def main():
    skip_without_containers()
    with Parts(sys.argv[1]) as parts:
        parts.start_control_plane("--log-level=warning")
        parts.start_node("--log-level=warning")
        parts.apply(MANIFEST)
        parts.wait_phase("p", "Running")
        wait_until("the container has printed", lambda: "hello" in parts.run("logs", "p", check=False))
        lines = parts.run("logs", "p").splitlines()
        assert "10.1.2.3\tdb\tdb.local" in lines and "127.0.0.1\tlocalhost" in lines, lines
        token = lines[-2]
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        pod = parts.get("pod", "p")
        assert claims["aud"] == ["vault"] and claims["sub"] == "system:serviceaccount:default:robot", claims
        assert claims["kubernetes.io"]["pod"]["uid"] == pod["metadata"]["uid"], claims
        assert claims["exp"] - claims["iat"] == 700, claims
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
                  "spec": {"token": token, "audiences": ["vault"]}}

        def authenticated():
            answer = json.loads(parts.api("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review))
            return answer["status"].get("authenticated", False)
        assert authenticated()
        assert not parts.events("UnsupportedFields"), parts.events("UnsupportedFields")
        parts.delete_pod("p", 20)
        assert not authenticated(), "a token ends with its pod"
        print("ok")


if __name__ == "__main__":
    main()
