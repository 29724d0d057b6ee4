"""Machines for a soak test: network namespaces on one bridge, each with a disk of its own, and what can happen to them.

`enter_sandbox` moves the whole test into its own network, mount and process namespaces. When it ends, by whatever means,
the kernel removes everything that it made."""
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
NETWORK = "10.77.0"
CLIENTS = f"{NETWORK}.1"
SANDBOX = "DRAKKAR_SOAK_SANDBOX"


def missing_tools():
    if os.geteuid() != 0:
        return "root"
    return ", ".join(t for t in ("ip", "iptables", "unshare", "nsenter", "openssl", "cc") if not shutil.which(t))


def enter_sandbox():
    """Runs this program again in namespaces of its own, and ends with its status. Returns in the sandbox."""
    if os.environ.get(SANDBOX):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run/netns"], check=True)
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "br0", "type", "bridge")
        run("ip", "addr", "add", f"{CLIENTS}/24", "dev", "br0")
        run("ip", "link", "set", "br0", "up")
        return
    pathlib.Path("/run/netns").mkdir(exist_ok=True)
    command = ["unshare", "--net", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child", "--mount-proc",
               sys.executable, *sys.argv]
    sys.exit(subprocess.run(command, env=dict(os.environ, **{SANDBOX: "1"}), check=False).returncode)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def works(*command):
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


class Process:
    """A program on a machine. `wanted` says whether it should run, so that the supervisor starts it again if it ends."""

    def __init__(self, machine, name, command, environment, log):
        self.machine, self.name, self.command, self.environment, self.log = machine, name, command, environment, log
        self.process = None
        self.wanted = False
        self.paused = False

    def start(self):
        self.wanted = True
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(["nsenter", f"--net=/run/netns/{self.machine.name}", *self.command],
                                            stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.environment,
                                            start_new_session=True)

    def kill(self, how=signal.SIGKILL):
        self.wanted = False
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(how)
            try:
                self.process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.paused = False

    def pause(self):
        if self.process is not None and self.process.poll() is None:
            self.paused = True
            self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.paused = False
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)

    def text(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""


class Machine:
    def __init__(self, work, name, last_byte, disk_mebibytes):
        self.name, self.address = name, f"{NETWORK}.{last_byte}"
        self.work = work
        self.disk = work / "disks" / name
        self.disk.mkdir(parents=True)
        run("mount", "-t", "tmpfs", "-o", f"size={disk_mebibytes}m", "tmpfs", str(self.disk))
        self.clock = work / f"{name}.clock"
        self.clock.write_bytes(struct.pack("q", 0))
        self.processes = {}
        run("ip", "netns", "add", name)
        run("ip", "link", "add", f"v-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "link", "set", f"v-{name}", "master", "br0", "up")
        self.inside("ip", "link", "set", "lo", "up")
        self.inside("ip", "addr", "add", f"{self.address}/24", "dev", "eth0")
        self.inside("ip", "link", "set", "eth0", "up")

    def inside(self, *command):
        return run("nsenter", f"--net=/run/netns/{self.name}", *command)

    def inside_works(self, *command):
        return works("nsenter", f"--net=/run/netns/{self.name}", *command)

    def add(self, name, command, shim=None):
        """Registers a program. With `shim`, its wall clock follows that of the machine."""
        environment = dict(os.environ)
        if shim is not None:
            environment.update(LD_PRELOAD=str(shim), CLOCK_SHIM=str(self.clock))
        log = self.work / "logs" / f"{self.name}-{name}.log"
        self.processes[name] = Process(self, name, [str(c) for c in command], environment, log)
        return self.processes[name]

    # What can happen.

    def set_clock(self, seconds):
        with open(self.clock, "r+b") as file:
            file.write(struct.pack("q", seconds))

    def cut(self, other, incoming=True, outgoing=True):
        """Drops packets from and to an address."""
        if incoming:
            self.inside("iptables", "-w", "-A", "INPUT", "-s", other, "-j", "DROP")
        if outgoing:
            self.inside("iptables", "-w", "-A", "OUTPUT", "-d", other, "-j", "DROP")

    def lose_packets(self, share):
        """Drops a share of all incoming packets. False if the kernel cannot."""
        return self.inside_works("iptables", "-w", "-A", "INPUT", "-i", "eth0", "-m", "statistic", "--mode", "random",
                                 "--probability", str(share), "-j", "DROP")

    def slow_down(self):
        """A delay where the kernel has netem, otherwise a narrow link. Returns what it did, or None."""
        if self.inside_works("tc", "qdisc", "add", "dev", "eth0", "root", "netem", "delay", "80ms", "40ms"):
            return "80 ms of delay"
        if self.inside_works("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "400kbit", "burst", "8kb",
                             "latency", "500ms"):
            return "400 kbit/s"
        return None

    def heal_network(self):
        self.inside("iptables", "-w", "-F")
        self.inside_works("tc", "qdisc", "del", "dev", "eth0", "root")

    def fill_disk(self):
        works("dd", "if=/dev/zero", f"of={self.disk}/filler", "bs=1M")

    def free_disk(self):
        (self.disk / "filler").unlink(missing_ok=True)


def build_clock_shim(work):
    library = work / "clock_shim.so"
    run("cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(HERE / "clock_shim.c"), "-ldl")
    return library
