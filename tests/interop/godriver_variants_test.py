#!/usr/bin/env python3
"""Go drivers that differ from the defaults of kubeletplugin: only older services, health that is not served or
rejected, sockets elsewhere, registration and service in two processes, both on one socket."""
import signal
import sys

from godriver_test import SLICE, Test, build, run_steps
from parts import Parts, skip_without_containers, wait_until

REGISTRATION = {"/pluginregistration.Registration/" + call for call in ("GetInfo", "NotifyRegistrationStatus")}


def service(version):
    return {f"/k8s.io.kubelet.pkg.apis.dra.{version}.DRAPlugin/{call}"
            for call in ("NodePrepareResources", "NodeUnprepareResources")}


def watch(version):
    return f"/{version}.DRAResourceHealth/NodeWatchResources"


class Variants(Test):
    def replace_driver(self, *flags, how=signal.SIGTERM):
        self.driver.stop(how)
        self.driver = self.new_driver("godriver", "", *flags)

    def back_to_default(self):
        self.replace_driver()
        wait_until("the default driver is watched", lambda: self.driver.count("watch"))
        self.nothing_left()

    def health_changes(self):
        if self.healthy:
            return super().health_changes()
        assert self.health(self.a) == [("Unknown", "")], self.health(self.a)

    def use(self, dra, health, *flags):
        """Runs a pod with a driver with these flags, which gets only these calls."""
        self.healthy = bool(health) and "--health=unsupported" not in flags
        self.replace_driver(*flags)
        self.prepare_and_unprepare()
        self.check_calls(dra, health)

    def check_calls(self, dra, health):
        expected = REGISTRATION | service(dra) | {watch(version) for version in health}
        assert set(self.driver.calls()) == expected, self.driver.lines
        metrics = self.parts.node_get("metrics")
        for method in service(dra):
            assert f'method_name="{method}"' in metrics, method

    def version(self, dra, health, *flags):
        self.use(dra, health, *flags)
        self.back_to_default()

    def both_old(self):
        self.use("v1beta1", ["v1alpha1"], "--dra=v1beta1", "--health=v1alpha1")
        self.start_pod("b")
        watches = self.driver.count("watch")
        self.restart_node(signal.SIGKILL)
        wait_until("the node watches again", lambda: self.driver.count("watch") > watches)
        wait_until("health", lambda: self.health("b") == [("Healthy", "")])
        self.start_pod("c")
        self.end_pod("b")
        self.end_pod("c")
        self.check_calls("v1beta1", ["v1alpha1"])
        self.back_to_default()

    def update_of_an_old_one(self):
        """Two instances with different versions; each is called in its own."""
        self.driver.stop()
        old = self.new_driver("old", "11111111-1111-1111-1111-111111111111", "--dra=v1beta1", "--health=v1alpha1")
        self.start_pod(self.a)
        old.expect("prepared")
        self.driver = self.new_driver("new", "22222222-2222-2222-2222-222222222222")
        wait_until("both are watched", lambda: self.driver.count("watch"))
        self.end_pod(self.a)
        self.driver.expect("unprepared")
        old.stop()
        assert set(old.calls()) == REGISTRATION | {watch("v1alpha1"), min(service("v1beta1"))}, old.lines
        assert set(self.driver.calls()) == REGISTRATION | {watch("v1"), max(service("v1"))}, self.driver.lines
        self.back_to_default()

    def refused(self):
        self.use("v1", ["v1", "v1alpha1"], "--health=unsupported")
        tried = [call for call in self.driver.calls() if "Health" in call]
        assert tried == [watch("v1"), watch("v1alpha1")], tried
        self.back_to_default()

    def other_names(self):
        self.use("v1", ["v1"], "--plugin-socket=x.sock", "--registrar-socket=y.sock")
        # When killed it leaves both sockets; the node then sees one instance that does not respond and one that does.
        self.driver.stop(signal.SIGKILL)
        left = self.parts.registry / "y.sock"
        assert left.is_socket()
        self.a += "-2"
        self.use("v1", ["v1"])
        left.unlink()
        self.back_to_default()

    def in_the_registry(self):
        """The service's socket looks like a plugin that does not respond, and is retried with back-off."""
        where = self.parts.registry / "dra.sock"
        self.use("v1", ["v1"], f"--plugin-dir={self.parts.registry}")
        states = [line for line in self.parts.node_get("metrics").splitlines()
                  if line.startswith("plugin_manager_total_plugins") and str(where) in line]
        assert len(states) == 1 and "desired_state_of_world" in states[0], states
        asked = [line for line in (self.parts.work / "log").read_text().splitlines()
                 if "plugin not registered" in line and f'socket="{where}"' in line]
        assert 1 <= len(asked) <= 7, asked
        self.back_to_default()
        wait_until("it is forgotten", lambda: str(where) not in self.parts.node_get("metrics"))

    def slices(self):
        return {each["metadata"]["uid"] for each in self.parts.get("resourceslices")["items"]
                if each["spec"].get("nodeName") == "n1"}

    def is_missed(self, pod):
        self.start_pod(pod, wait=False)
        wait_until("it is missed", lambda: self.parts.events("FailedPrepareDynamicResources", pod))
        wait_until("unknown", lambda: self.health("held") == [("Unknown", "")])

    def is_back(self, pod):
        self.parts.wait_phase(pod, "Running", 30)
        wait_until("known again", lambda: self.health("held") == [("Healthy", "")])
        self.end_pod(pod)

    def split(self):
        def start(what, *flags):
            return self.new_driver(what, "", f"--serve={what}", *flags)
        self.healthy = True
        self.driver.stop()
        registrar, self.driver = start("registrar"), start("dra")
        self.prepare_and_unprepare()
        assert set(registrar.calls()) == REGISTRATION, registrar.lines
        assert set(self.driver.calls()) == service("v1") | {watch("v1")}, self.driver.lines
        self.start_pod("held")
        wait_until("healthy", lambda: self.health("held") == [("Healthy", "")])
        slices = wait_until("slices", self.slices)
        # The service restarts behind the registration.
        registrations = registrar.calls()
        self.driver.stop(signal.SIGKILL)
        self.is_missed("b")
        self.driver = start("dra")
        self.is_back("b")
        # The registration may advertise more than this service has, and this one may have more than the previous one.
        for served in ("v1alpha1", "v1", "none", "v1,v1alpha1"):
            self.driver.stop()
            wait_until("unknown", lambda: self.health("held") == [("Unknown", "")])
            self.driver = start("dra", f"--health={served}")
            if served == "none":
                self.start_pod("without")
                assert self.health("held") == self.health("without") == [("Unknown", "")]
                self.end_pod("without")
            else:
                wait_until("known again", lambda: self.health("held") == [("Healthy", "")])
        assert registrar.calls() == registrations, registrar.lines
        registrar.stop()
        self.is_missed("c")
        assert any("not registered" in each for each in self.parts.events("FailedPrepareDynamicResources", "c"))
        registrar = start("registrar")
        self.is_back("c")
        assert self.slices() == slices, "slices are kept"
        # The node starts between the two, in either order.
        self.parts.apply(SLICE)
        for pod, first, second in (("d", "registrar", "dra"), ("e", "dra", "registrar")):
            self.driver.stop()
            registrar.stop()
            both = {first: start(first)}
            self.restart_node(signal.SIGKILL)
            self.start_pod(pod, wait=False)
            wait_until("it is missed", lambda pod=pod: self.parts.events("FailedPrepareDynamicResources", pod))
            both[second] = start(second)
            registrar, self.driver = both["registrar"], both["dra"]
            self.is_back(pod)
            assert self.driver.count("watch") == 1, self.driver.lines
        self.end_pod("held")
        registrar.stop()
        self.back_to_default()

    def one_socket(self):
        self.use("v1", [], "--serve=common")
        self.start_pod("f")
        self.restart_node(signal.SIGKILL)
        self.start_pod("g")
        self.end_pod("f")
        self.end_pod("g")
        self.check_calls("v1", [])
        self.back_to_default()


def main():
    skip_without_containers()
    binary = build("godriver_variants")
    with Parts(sys.argv[1]) as parts:
        test = Variants(parts, binary)
        run_steps(test, [
            ("DRA v1beta1 only", lambda: test.version("v1beta1", ["v1"], "--dra=v1beta1")),
            ("health v1alpha1 only", lambda: test.version("v1", ["v1alpha1"], "--health=v1alpha1")),
            ("nothing old", lambda: test.version("v1", ["v1"], "--dra=v1", "--health=v1")),
            ("no health", lambda: test.version("v1", [], "--health=none")),
            ("health is refused", test.refused),
            ("rolling update of an old one", test.update_of_an_old_one),
            ("other socket names", test.other_names),
            ("the service's socket in the registry", test.in_the_registry),
            ("split", test.split),
            ("both old, the node restarts", test.both_old),
            ("one socket", test.one_socket)])


if __name__ == "__main__":
    main()
