"""docs/metrics.md as data."""
import pathlib
import re
from dataclasses import dataclass

TABLE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
COMPONENTS = {"Devices and claims (scheduler)": "scheduler", "Scheduler": "scheduler", "Node": "node",
              "Controllers": "controllers", "API server": "apiserver", "Driver": "driver"}


@dataclass
class Row:
    component: str
    name: str
    kind: str
    labels: frozenset
    always: bool


def read_table():
    rows = []
    component = None
    for line in TABLE.read_text().splitlines():
        if line.startswith("## "):
            component = COMPONENTS[line[3:]]
        match = re.match(r"\| `(\w+)`( \*)? \| (\w+) \| ([\w, ]*)\|", line)
        if not match:
            continue
        labels = frozenset(label.strip() for label in match[4].split(",") if label.strip())
        rows.append(Row(component, match[1], match[3], labels, not match[2]))
        if component == "node" and match[1].startswith("dra_"):
            rows.append(Row(component, f"kubelet_{match[1]}", match[3], labels, not match[2]))
    assert len(rows) > 40, rows
    return rows


def read_metrics(text):
    """Name to (type, labels of all its series) of an exposition text."""
    kinds, labels = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            kinds[name] = kind
            labels.setdefault(name, set())
        elif line and not line.startswith("#"):
            series = re.match(r"(\w+)(?:\{(.*)\})? ", line)
            name = series[1]
            if name not in kinds:
                name = re.sub(r"_(bucket|count|sum)$", "", name)
            found = set(re.findall(r'(\w+)="(?:[^"\\]|\\.)*"', series[2] or ""))
            labels[name] |= found - ({"le"} if kinds[name] == "histogram" else set())
    return {name: (kind, frozenset(labels[name])) for name, kind in kinds.items()}
