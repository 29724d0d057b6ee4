#!/usr/bin/env python3
"""docs/metrics.md against what `drakkar up` serves while a pod with a device comes and goes.

usage: metrics_table_test.py DRAKKAR
"""
import base64
import json
import ssl
import sys
import urllib.request

from cluster import ROOT, Cluster, free_port, skip_without_containers, wait_until
from metrics_table import read_metrics, read_table

WAITING = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "too-big"}, "spec": {
    "containers": [{"name": "c", "image": "none", "resources": {"requests": {"cpu": "100000"}}}]}}


class Scraper:
    def __init__(self, cluster):
        config = (cluster.data / "admin.kubeconfig").read_text()
        pem = cluster.work / "admin.pem"
        field = lambda name: base64.b64decode(config.split(f"{name}: ")[1].split()[0].strip('"'))  # noqa: E731
        pem.write_bytes(field("client-certificate-data") + field("client-key-data"))
        self.context = ssl._create_unverified_context()
        self.context.load_cert_chain(pem)

    def __call__(self, port):
        with urllib.request.urlopen(f"https://127.0.0.1:{port}/metrics", context=self.context, timeout=30) as answer:
            return answer.read().decode()


def compare(component, text):
    served = read_metrics(text)
    rows = {row.name: row for row in read_table() if row.component == component}
    problems = []
    for name, (kind, labels) in sorted(served.items()):
        if name.startswith("process_"):
            continue
        row = rows.get(name)
        if row is None:
            problems.append(f"{name} ({kind}, {', '.join(sorted(labels))}) is served, but not in the table")
        elif row.kind != kind or (labels and row.labels != labels):
            problems.append(f"{name}: served as {kind} with {sorted(labels)}, in the table {row.kind} with {sorted(row.labels)}")
    for name, row in rows.items():
        if row.always and name not in served:
            problems.append(f"{name} is in the table without a star, but not served")
    print(f"{component}: {len(served)} metrics served, {sum(name in served for name in rows)} of {len(rows)} rows seen")
    return [f"{component}: {problem}" for problem in problems]


def main():
    skip_without_containers()
    scheduler, controllers = free_port(), free_port()
    with Cluster(sys.argv[1], f"--scheduler-port={scheduler}", f"--controllers-port={controllers}") as cluster:
        cluster.start()
        for manifest in ("class", "claim-template", "pod"):
            path = ROOT / f"examples/hello-device/{manifest}.yaml"
            if path.exists():
                cluster.run("apply", "-f", str(path))
        cluster.run("create", "-f", "-", stdin=json.dumps(WAITING))
        scrape = Scraper(cluster)
        wait_until("a claim is in use", lambda: 'state="used"} 1' in scrape(scheduler), 60)
        wait_until("a node was refused", lambda: "drakkar_scheduler_refused_nodes_total{" in scrape(scheduler))
        wait_until("a claim is prepared", lambda: "dra_operations_duration_seconds_count{" in scrape(cluster.ports[1]), 60)
        text = scrape(scheduler)
        for line in ('drakkar_devices{class="', 'drakkar_resource_claims{age="1m",state="pending"} 0'):
            assert line in text, line
        problems = []
        for component, port in (("apiserver", cluster.ports[0]), ("scheduler", scheduler), ("controllers", controllers),
                                ("node", cluster.ports[1])):
            problems += compare(component, scrape(port))
        assert not problems, "\n" + "\n".join(problems)
    print("ok: docs/metrics.md lists what is served")


if __name__ == "__main__":
    main()
