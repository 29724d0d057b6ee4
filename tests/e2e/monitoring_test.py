#!/usr/bin/env python3
"""The files in deploy/monitoring are valid, their alerts fire when they should, and every metric they use is in
docs/metrics.md. Needs promtool (Debian package prometheus)."""
import json
import pathlib
import re
import shutil
import subprocess

from metrics_table import read_table

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "monitoring"
SKIP = 77
# Words in expressions that are not metrics: functions, keywords, and labels in `by`.
NAME = re.compile(r"\b((?:drakkar|scheduler|dra|kubelet|apiserver|device|dynamic|plugin|etcd|process|authorization)_\w+)\b")


def metrics_in(expressions):
    found = set()
    for expression in expressions:
        without_labels = re.sub(r"\{[^}]*\}|by \([^)]*\)", "", expression)
        found |= {re.sub(r"_(bucket|count|sum)$", "", name) for name in NAME.findall(without_labels)}
    return found


def main():
    table = {row.name for row in read_table()}
    rules = re.findall(r"^    expr: (.*)$", (FOLDER / "rules.yaml").read_text(), re.M)
    board = json.loads((FOLDER / "grafana-dashboard.json").read_text())
    panels = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    panels += [entry["query"] for entry in board["templating"]["list"] if entry["type"] == "query"]
    assert len(rules) >= 10 and len(panels) >= 10, (rules, panels)
    for name in sorted(metrics_in(rules + panels)):
        assert name in table, f"{name} is not in docs/metrics.md"
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids)), "panels of the dashboard share an id"
    promtool = shutil.which("promtool")
    if not promtool:
        print("skipped: needs promtool (Debian package prometheus)")
        raise SystemExit(SKIP)
    for words in (["check", "rules", "rules.yaml"], ["test", "rules", "rules_test.yaml"],
                  ["check", "config", "--syntax-only", "prometheus.yaml"]):
        done = subprocess.run([promtool, *words], cwd=FOLDER, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"promtool {' '.join(words)}\n{done.stdout}{done.stderr}"
    print(f"ok: {len(rules)} alert rules and {len(panels)} queries of the dashboard")


if __name__ == "__main__":
    main()
