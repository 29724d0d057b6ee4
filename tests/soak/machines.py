"""Machines for a soak test: network namespaces on one virtual switch, each with a disk of its own, and what can happen to
them.

`enter_sandbox` moves the whole test into its own network, mount and process namespaces. When it ends, by whatever means,
the kernel removes everything that it made."""
import mmap
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
    if not os.path.exists("/dev/net/tun"):
        return "/dev/net/tun"
    return ", ".join(t for t in ("ip", "unshare", "nsenter", "openssl", "cc") if not shutil.which(t))


def enter_sandbox():
    """Runs this program again in namespaces of its own, and ends with its status. Returns in the sandbox."""
    if os.environ.get(SANDBOX):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run/netns"], check=True)
        run("ip", "link", "set", "lo", "up")
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


class Network:
    """The switch between the machines. Port 0 is the test itself, with its clients."""

    LINK = struct.Struct("4i")  # `struct Link` of virtual_switch.c

    def __init__(self, work, addresses):
        """`addresses`: of the machines by name."""
        self.addresses = [CLIENTS, *addresses.values()]
        program = build(work, "virtual_switch", "-O2")
        path = work / "links"
        path.write_bytes(bytes(self.LINK.size * len(self.addresses) ** 2))
        with open(path, "r+b") as file:
            self.links = mmap.mmap(file.fileno(), 0)
        for name in addresses:
            run("ip", "netns", "add", name)
        self.process = subprocess.Popen([program, path, "-", *addresses], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n", "the virtual switch did not start"
        for port, (name, address) in enumerate([("-", CLIENTS), *addresses.items()]):
            enter = [] if name == "-" else ["nsenter", f"--net=/run/netns/{name}"]
            run(*enter, "ip", "link", "set", "lo", "up")
            run(*enter, "ip", "link", "set", "eth0", "address", f"02:00:00:00:00:{port:02x}", "mtu", "9000", "up")
            run(*enter, "ip", "addr", "add", f"{address}/24", "dev", "eth0")

    def set(self, sender, receiver, lost=0.0, delay=0.0, jitter=0.0, rate=0):
        """What happens from one address to another: share of packets lost, seconds of delay, bytes per second."""
        number = self.addresses.index(sender) * len(self.addresses) + self.addresses.index(receiver)
        self.LINK.pack_into(self.links, number * self.LINK.size, int(lost * 1e6), int(delay * 1e6), int(jitter * 1e6), rate)

    def alive(self):
        return self.process.poll() is None


class Machine:
    def __init__(self, work, name, network, address, disk_mebibytes):
        self.name, self.address, self.network = name, address, network
        self.work = work
        self.disk = work / "disks" / name
        self.disk.mkdir(parents=True)
        run("mount", "-t", "tmpfs", "-o", f"size={disk_mebibytes}m", "tmpfs", str(self.disk))
        self.clock = work / f"{name}.clock"
        self.clock.write_bytes(struct.pack("q", 0))
        self.processes = {}

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

    def change_link(self, other, incoming=True, outgoing=True, **change):
        """Changes what happens to packets from and to an address, see Network.set."""
        if incoming:
            self.network.set(other, self.address, **change)
        if outgoing:
            self.network.set(self.address, other, **change)

    def change_links(self, **change):
        """The same for all other machines and the clients."""
        for other in self.network.addresses:
            self.change_link(other, **change)

    def fill_disk(self):
        with open(self.disk / "filler", "wb") as file:
            step = 1 << 24
            while step >= 1 << 12:
                try:
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, step)
                except OSError:
                    step >>= 1

    def free_disk(self):
        (self.disk / "filler").unlink(missing_ok=True)


def build(work, name, *flags):
    program = work / name
    run("cc", *flags, "-o", str(program), str(HERE / f"{name}.c"), "-ldl")
    return program
