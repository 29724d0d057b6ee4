"""What happens to the machines, drawn from a seed: one or two faults at a time, each undone after some seconds."""
import collections
import random
import signal
import time

from machines import CLIENTS

STEPS_SECONDS = (-86400, -3600, -30, 30, 3600, 86400)
ENDED_BADLY = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGILL, -signal.SIGFPE, -signal.SIGBUS}


class Faults:
    def __init__(self, deployment, seed, say):
        self.deployment, self.say = deployment, say
        self.random = random.Random(f"{seed}/faults")
        self.active = []  # (end, machine, undo)
        self.counts = collections.Counter()
        self.next = time.monotonic() + 1
        self.restarts = collections.Counter()
        self.crashes = []
        self.ended_at = {}
        deployment.while_waiting = lambda: self.supervise(time.monotonic())

    # Faults. Each does something to a machine and returns (what, how to undo it).

    def kill(self, machine):
        process = self.random.choice(list(machine.processes.values()))
        process.kill()
        return f"kill {process.name}", process.start

    @staticmethod
    def cut_off_and_kill(machine):
        """As if somebody pulled the plug: no peer is notified. Returns a function that undoes it."""
        machine.change_links(lost=1)
        for process in machine.processes.values():
            process.kill()

        def undo():
            machine.change_links()
            for process in machine.processes.values():
                process.start()
        return undo

    def lose_machine(self, machine):
        return "lose the machine", self.cut_off_and_kill(machine)

    def pause(self, machine):
        process = self.random.choice(list(machine.processes.values()))
        process.pause()
        return f"pause {process.name}", process.resume

    def partition(self, machine):
        """From some or all others, and perhaps from the clients, in one direction or both."""
        others = [m.address for m in self.deployment.machines if m is not machine]
        chosen = self.random.choice([others, self.random.sample(others, self.random.randint(1, len(others))),
                                     [m.address for m in self.deployment.control if m is not machine]])
        if self.random.random() < 0.5:
            chosen = chosen + [CLIENTS]
        incoming, outgoing = self.random.choice([(True, True), (True, False), (False, True)])
        for other in chosen:
            machine.change_link(other, incoming, outgoing, lost=1)
        direction = "" if incoming and outgoing else ", incoming only" if incoming else ", outgoing only"
        return f"partition from {len(chosen)}{direction}", machine.change_links

    def slow_link(self, machine):
        delay, rate = self.random.choice([(0.08, 0), (0.3, 0), (0.005, 50_000), (0.02, 200_000)])
        machine.change_links(delay=delay, jitter=delay / 2, rate=rate)
        return f"slow link, {delay * 1000:.0f} ms" + (f", {rate // 1000} kB/s" if rate else ""), machine.change_links

    def lossy_link(self, machine):
        share = self.random.choice((0.05, 0.2, 0.4))
        machine.change_links(lost=share)
        return f"lossy link, {share:.0%}", machine.change_links

    def full_disk(self, machine):
        machine.fill_disk()
        return "full disk", machine.free_disk

    def step_clock(self, machine):
        seconds = self.random.choice(STEPS_SECONDS)
        machine.set_clock(seconds)
        return f"clock {seconds:+} s", lambda: machine.set_clock(0)

    def tick(self):
        now = time.monotonic()
        for each in [a for a in self.active if a[0] <= now]:
            self.active.remove(each)
            each[2]()
        self.supervise(now)
        if now >= self.next:
            self.inject(now)

    def inject(self, now):
        self.next = now + self.random.uniform(1.5, 4)
        affected = {machine for _, machine, _ in self.active}
        if len(affected) >= 2:
            return
        pool = self.deployment.control if self.random.random() < 0.7 else self.deployment.nodes
        # Two control-plane machines at once cost the majority; that is tried, too, but not all the time.
        if pool is self.deployment.control and affected & set(pool) and self.random.random() < 0.8:
            pool = self.deployment.nodes
        machine = self.random.choice(pool)
        if machine in affected:
            return
        fault = self.random.choices((self.kill, self.lose_machine, self.pause, self.partition, self.slow_link,
                                     self.lossy_link, self.full_disk, self.step_clock), (5, 2, 4, 5, 2, 2, 2, 2))[0]
        what, undo = fault(machine)
        seconds = self.random.uniform(0.5, 3) if what.startswith("kill") else self.random.uniform(2, 8)
        self.counts[fault.__name__.replace("_", " ")] += 1
        self.say(f"{machine.name}: {what} for {seconds:.1f} s")
        self.active.append((now + seconds, machine, undo))

    def supervise(self, now):
        """Restarts processes that ended by themselves, as systemd would, half a second later."""
        for process in self.deployment.processes():
            if not process.wanted or process.process.poll() is None:
                self.ended_at.pop(process, None)
                continue
            if process not in self.ended_at:
                self.ended_at[process] = now
                self.restarts[process.name] += 1
                status = process.process.returncode
                if status in ENDED_BADLY and process.name != "etcd":
                    self.crashes.append(f"{process.machine.name} {process.name} ended with signal {-status}: "
                                        f"{process.text()[-400:]}")
            elif now - self.ended_at[process] > 0.5:
                del self.ended_at[process]
                process.start()

    def heal(self):
        for _, _, undo in self.active:
            undo()
        self.active.clear()
        for process in self.deployment.processes():
            if not process.wanted:
                process.start()
