#!/usr/bin/env python3
"""A control plane under attack next to a normal load.

Floods, slow clients, watches that are never read, worst-case bodies, kills, a full disk and clock jumps, one round after
the other, each drawn from the seed. Prints how many requests the normal load got answered, their p99, the memory of all
components, and what was lost. Exits with 1 if anything that was acknowledged is lost, the p99 exceeds 100 ms, memory
exceeds 500 MB, or a component ended by itself."""
import argparse
import json
import multiprocessing
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import attackers
import load
from servers import Servers

CLIENTS = 4
ROUND_SECONDS = 5
P99_SECONDS_MAX = 0.100
MEMORY_BYTES_MAX = 500 << 20
JUMPS_SECONDS = (3600, -3600, 40 * 86400, -86400)


class Meter:
    """The largest memory use so far, sampled."""

    def __init__(self, servers):
        self.servers = servers
        self.peak = 0
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while not self.done.wait(0.2):
            self.peak = max(self.peak, self.servers.memory_bytes())

    def stop(self):
        self.done.set()
        self.thread.join()


def fill_disk(servers):
    filler = servers.disk / "filler"
    subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=1M"], capture_output=True, check=False)
    time.sleep(1)
    filler.unlink()


def jump_clock(servers, draw):
    servers.set_clock(draw.choice(JUMPS_SECONDS))
    time.sleep(1)
    servers.set_clock(0)


def attack(servers, credentials, draw, seconds):
    """One round: one or two attackers, and perhaps a disaster."""
    chosen = draw.sample(attackers.ALL, draw.choice([1, 2]))
    disasters = [None, "kill apiserver", "kill controllers", "kill scheduler"]
    if servers.has_own_disk:
        disasters.append("full disk")
    if servers.clock:
        disasters.append("clock jump")
    disaster = draw.choice(disasters)
    print(f"attack: {', '.join(each.__name__ for each in chosen)}; {disaster or 'nothing else'}", flush=True)
    running = []
    for each in chosen:
        process = multiprocessing.Process(
            target=each, args=(servers.ports["apiserver"], credentials, seconds, random.Random(draw.random())), daemon=True)
        process.start()
        running.append(process)
    time.sleep(seconds / 2)
    if disaster == "full disk":
        fill_disk(servers)
    elif disaster == "clock jump":
        jump_clock(servers, draw)
    elif disaster:
        servers.kill(disaster.split()[1])
    for process in running:
        process.join(seconds + 30)
        if process.is_alive():
            process.kill()
    return [f"{name} ended by itself: {servers.log(name)[-500:]}" for name in servers.revive()]


def stored_values(servers):
    values = {}
    token = ""
    while True:
        status, body = servers.request("GET", f"{load.COLLECTION}?limit=500{token}")
        assert status == 200, body[:500]
        page = json.loads(body)
        for item in page["items"]:
            values[item["metadata"]["name"]] = item.get("data", {}).get("value")
        token = page["metadata"].get("continue")
        if not token:
            return values
        token = f"&continue={token}"


def find_losses(results, stored):
    losses = []
    for known, uncertain, _, _ in results:
        for name, value in known.items():
            if value == "":
                continue
            allowed = [value, *uncertain.get(name, [])]
            if stored.get(name) not in allowed:
                losses.append(f"{name}: acknowledged {value}, found {stored.get(name)}")
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("drakkar")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--functional", action="store_true", help="judge what was lost, not how fast it was")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    draw = random.Random(options.seed)
    work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-attack-"))
    servers = Servers(options.drakkar, work)
    problems = []
    try:
        servers.start_all()
        meter = Meter(servers)
        credentials = servers.credentials()
        stop = multiprocessing.Event()
        queue = multiprocessing.Queue()
        clients = [multiprocessing.Process(target=load.run, daemon=True, args=(
            number, options.seed, servers.ports["apiserver"], credentials, stop, queue)) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        deadline = time.monotonic() + options.minutes * 60
        while time.monotonic() < deadline:
            problems += attack(servers, credentials, draw, min(ROUND_SECONDS, deadline - time.monotonic() + 0.5))
        stop.set()
        results = [queue.get(timeout=120) for _ in clients]
        for client in clients:
            client.join()
        meter.stop()
        # What counts is what a crash leaves.
        servers.kill("apiserver")
        losses = find_losses(results, stored_values(servers))
        latencies = sorted(each for _, _, measured, _ in results for each in measured)
        p99 = latencies[int(len(latencies) * 0.99)] if latencies else float("inf")
        failures = {}
        for _, _, _, failed in results:
            for reason, count in failed.items():
                failures[str(reason)] = failures.get(str(reason), 0) + count
        print(f"requests served: {len(latencies)}")
        print(f"refused or cut off: {json.dumps(failures, sort_keys=True)}")
        print(f"p99 of the normal load: {p99 * 1000:.1f} ms")
        print(f"memory, largest: {meter.peak / 1e6:.0f} MB")
        print(f"acknowledged writes lost: {len(losses)}")
        problems += losses[:20]
        if not latencies:
            problems.append("the normal load got no answer at all")
        if not options.functional and p99 > P99_SECONDS_MAX:
            problems.append(f"p99 is above {P99_SECONDS_MAX * 1000:.0f} ms")
        if meter.peak > MEMORY_BYTES_MAX:
            problems.append(f"memory is above {MEMORY_BYTES_MAX >> 20} MiB")
    finally:
        servers.stop()
        if problems:
            print(f"logs are kept in {work}")
        else:
            shutil.rmtree(work, ignore_errors=True)
    for problem in problems:
        print(f"failed: {problem}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
