"""Hosts with networks of their own, on this machine: one network namespace each, on one bridge.

    with Namespaces(["zookeeper", "broker-1"]) as land:
        command = [*land.prefix("broker-1"), "python", ...]
        land.cut("broker-1", "zookeeper")          # one way: nothing that it sends arrives there

The test itself is on the bridge, too, as the host `test`. A cut is a neighbour entry that leads
nowhere: packets leave and are lost, as on a broken line, in that direction alone, and those of
connections that are open no less. Needs root, and iproute2.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Sequence
from types import TracebackType

import pytest

TEST = "test"
NOWHERE = "02:00:00:00:00:01"
"""An address that no interface has."""


class Namespaces:
    """Some hosts, and the lines between them."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self._hosts = list(hosts)
        self._mark = f"{os.getpid() % 46656:x}{random.SystemRandom().randrange(4096):x}"
        self._subnet = f"10.{random.SystemRandom().randrange(64, 128)}.{os.getpid() % 256}"
        self._cuts: list[tuple[str, str]] = []
        self._hub = f"hub-{self._mark}"

    def __enter__(self) -> Namespaces:
        try:
            self._build()
        except BaseException:
            self._tear_down()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._tear_down()

    def address(self, host: str) -> str:
        """Return where a host is reached."""
        return f"{self._subnet}.{([TEST, *self._hosts]).index(host) + 1}"

    def prefix(self, host: str) -> list[str]:
        """Return what runs a command on a host."""
        return [] if host == TEST else ["ip", "netns", "exec", self._name(host)]

    def cut(self, source: str, target: str) -> None:
        """Lose whatever goes from one host to another; what comes back arrives."""
        place = ["neigh", "replace", self.address(target), "lladdr", NOWHERE]
        _run([*self.prefix(source), "ip", *place, "dev", self._device(source), "nud", "permanent"])
        self._cuts.append((source, target))

    def heal(self) -> None:
        """Undo every cut."""
        cuts, self._cuts = self._cuts, []
        for source, target in cuts:
            entry = ["neigh", "del", self.address(target), "dev", self._device(source)]
            _run([*self.prefix(source), "ip", *entry])

    def _name(self, host: str) -> str:
        return f"{host}-{self._mark}"

    def _device(self, host: str) -> str:
        return f"t{self._mark}" if host == TEST else "eth0"

    def _build(self) -> None:
        _run(["ip", "netns", "add", self._hub])
        _run(["ip", "-n", self._hub, "link", "add", "bridge", "type", "bridge"])
        _run(["ip", "-n", self._hub, "link", "set", "bridge", "up"])
        for number, host in enumerate([TEST, *self._hosts]):
            device, port = self._device(host), f"p{number}"
            own = [] if host == TEST else ["-n", self._name(host)]
            if own:
                _run(["ip", "netns", "add", self._name(host)])
            line = ["link", "add", device, "type", "veth", "peer", "name", port]
            _run(["ip", *own, *line, "netns", self._hub])
            _run(["ip", "-n", self._hub, "link", "set", port, "master", "bridge", "up"])
            _run(["ip", *own, "addr", "add", f"{self.address(host)}/24", "dev", device])
            _run(["ip", *own, "link", "set", device, "up"])
            if own:
                _run(["ip", *own, "link", "set", "lo", "up"])

    def _tear_down(self) -> None:
        for host in self._hosts:
            _try(["ip", "netns", "del", self._name(host)])
        _try(["ip", "netns", "del", self._hub])
        _try(["ip", "link", "del", self._device(TEST)])  # unless it went with its peer


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


def _try(command: Sequence[str]) -> None:
    subprocess.run(command, capture_output=True)


def skip_unless_possible() -> None:
    """Skip where this machine does not allow namespaces, and say why."""
    if shutil.which("ip") is None:
        pytest.skip("no network namespaces: `ip` is missing (Debian's package iproute2)")
    if os.geteuid() != 0:
        pytest.skip("no network namespaces: that needs root")
    try:
        with Namespaces(["probe"]) as land:
            land.cut("probe", TEST)
            land.heal()
    except OSError as failure:
        pytest.skip(f"no network namespaces: {failure}")
