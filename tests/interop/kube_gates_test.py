"""Our table of feature gates against the registry of Kubernetes' own published modules: the same gates in the same
releases, with the same defaults, locks and dependencies, except for the rows in docs/compatibility.md ("gates never locked",
"5328 gate")."""
import json
import os
import subprocess
import sys

import go_peer

RELEASES = ["1.34", "1.35", "1.36", "1.37"]
OURS = sys.argv[1]

# Gates of the five proposals: not locked here, so that upgrades and downgrades can be tested.
NEVER_LOCKED = {"NodeDeclaredFeatures", "DRAResourceClaimDeviceStatus"}
# Declared features work without NodeDeclaredFeatures; only this gate depends on it, under either name.
NEEDS_DECLARING = {"DRAOptionalNodeOperations"}
# Locked to true in every release that has one of our gates that depends on it, so the dependency has no effect.
ALWAYS_ON = {"DeclarativeValidation"}


def ours(release):
    out = subprocess.run([OURS, "features", "gates", "--version", release, "-o", "json"], check=True, capture_output=True,
                         text=True).stdout
    return {gate.get("alias", gate["name"]): gate for gate in json.loads(out)}


def expected(name, theirs):
    gate = dict(theirs)
    if name in NEVER_LOCKED:
        gate["locked"] = False
    gate["needs"] = [each for each in gate["needs"] if each not in ALWAYS_ON]
    if name not in NEEDS_DECLARING:
        gate["needs"] = [each for each in gate["needs"] if each != "NodeDeclaredFeatures"]
    return gate


def main():
    peer = go_peer.build("kube/gates", os.environ.get("DRAKKAR_BINARY_DIR", "build/dev"))
    theirs = json.loads(subprocess.run([peer, *RELEASES], check=True, capture_output=True, text=True).stdout)
    all_names = {name for release in RELEASES for name in ours(release)}
    differences = []
    compared = 0
    for release in RELEASES:
        mine = ours(release)
        for name in sorted(all_names):
            known = theirs[release].get(name)
            if (known is None) != (name not in mine):
                differences.append(f"{release} {name}: {'not ' if known is None else ''}known to Kubernetes")
                continue
            if known is None:
                continue
            compared += 1
            want = expected(name, known)
            have = {"default": mine[name]["default"], "locked": mine[name]["locked"], "needs": sorted(mine[name]["needs"])}
            if have != want:
                differences.append(f"{release} {name}: Kubernetes has {want}, we have {have}")
    if differences:
        raise SystemExit("gates differ:\n" + "\n".join(differences))
    print(f"ok: {compared} gates in {len(RELEASES)} releases")


main()
