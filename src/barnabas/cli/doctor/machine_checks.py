"""Checks of a broker's machine: its directories, their disks, descriptors, memory, ZooKeeper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.cli.doctor.cluster_checks import space
from barnabas.cli.doctor.finding import Finding, amber, green, red
from barnabas.cli.output import counted
from barnabas.diary.wording import size

SYNC_AMBER_MS, SYNC_RED_MS = 50.0, 500.0
FREE_DESCRIPTORS = 1000
"""For connections, besides the files of the logs."""
AVAILABLE_AMBER = 0.1
STALL_AMBER, STALL_RED = 10.0, 40.0
"""Percent of the last minute in which some task waited for memory."""
ZOOKEEPER_AMBER_MS, ZOOKEEPER_RED_MS = 50.0, 1000.0
OUTSTANDING_AMBER = 100


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory of log.dirs; `failure` is why no file could be written there."""

    path: str
    failure: str | None = None
    total_bytes: int | None = None
    usable_bytes: int | None = None
    free_inodes: int | None = None

    def judge(self) -> Finding:
        """Return whether a broker can write there."""
        if self.failure is not None:
            return red(
                "directory",
                self.path,
                self.failure,
                "make it writable for the broker's user (mount, owner, mode, space)",
            )
        if self.free_inodes == 0:
            step = "remove small files, or make a file system with more inodes"
            return red("disk space", self.path, "no inode is free", step)
        return space(self.path, self.total_bytes, self.usable_bytes, None)


@dataclass(frozen=True, slots=True)
class DiskSpeed:
    """How fast a disk makes small writes durable, and takes large ones."""

    path: str
    sync_ms: float
    """The median of several."""
    bytes_per_s: float

    def judge(self) -> Finding:
        """Return whether the disk is fast enough for a log."""
        text = f"fsync in {self.sync_ms:.1f} ms, writes {size(self.bytes_per_s)}/s"
        step = "put log.dirs on a local disk (SSD) that nothing else keeps busy"
        if self.sync_ms >= SYNC_RED_MS:
            return red("disk speed", self.path, text, step)
        if self.sync_ms >= SYNC_AMBER_MS:
            return amber("disk speed", self.path, text, step)
        return green("disk speed", self.path, text)


@dataclass(frozen=True, slots=True)
class LastStop:
    """How the broker of a directory stopped."""

    path: str
    logs: int
    running_pid: int | None = None
    was_clean: bool = True

    def judge(self) -> Finding:
        """Return whether the next start has to check the logs."""
        if self.running_pid is not None:
            return green("last stop", self.path, f"in use by process {self.running_pid}")
        if self.logs and not self.was_clean:
            return amber(
                "last stop",
                self.path,
                f"was not clean: the next start checks {counted(self.logs, 'log')}",
                "check them before: barnabas log verify",
            )
        return green("last stop", self.path, f"clean, {counted(self.logs, 'log')}")


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose the directories are by their meta.properties, and who the options say it is."""

    by_path: Mapping[str, Mapping[str, str]]
    broker_id: int | None = None
    """None if the options leave it open."""

    def judge(self) -> Finding:
        """Return whether all directories are of one broker, and of this one."""
        known: dict[str, tuple[str, str]] = {}
        for path, names in self.by_path.items():
            for name, value in names.items():
                other, other_path = known.setdefault(name, (value, path))
                if other != value:
                    return red(
                        "owner",
                        path,
                        f"{name}={value} in meta.properties, and {other} in {other_path}",
                        "name only directories of one broker in log.dirs",
                    )
        owner = known.get("broker.id")
        if owner is not None and self.broker_id is not None and owner[0] != str(self.broker_id):
            return red(
                "owner",
                owner[1],
                f"belongs to broker {owner[0]}, and broker.id={self.broker_id}",
                f"set broker.id={owner[0]}, or another directory in log.dirs",
            )
        if owner is None:
            return green("owner", "", "no broker has used the directories yet")
        return green("owner", "", f"broker {owner[0]}")


@dataclass(frozen=True, slots=True)
class Descriptors:
    """How many files a broker may open, and how many its logs have."""

    limit: int
    segments: int
    used: int | None = None
    """None if no broker is running."""

    def judge(self) -> Finding:
        """Return whether the limit leaves room for connections."""
        about = "running broker" if self.used is not None else "this shell"
        opened = f"{self.used} open, " if self.used is not None else ""
        text = f"limit {self.limit}, {opened}{counted(self.segments, 'segment')} on disk"
        step = "raise it to 100000: LimitNOFILE= of the service, or ulimit -n"
        if self.limit < self.segments or (self.used is not None and self.used > 0.9 * self.limit):
            return red("descriptors", about, text, step)
        if self.limit < 2 * self.segments + FREE_DESCRIPTORS:
            return amber("descriptors", about, text, step)
        return green("descriptors", about, text)


@dataclass(frozen=True, slots=True)
class Memory:
    """What is left for the page cache, which serves reads and takes writes."""

    total_bytes: int
    available_bytes: int
    stalled_percent: float | None = None
    """None if the kernel does not count it."""

    def judge(self) -> Finding:
        """Return whether the page cache is under pressure."""
        text = f"{size(self.available_bytes)} of {size(self.total_bytes)} available"
        stalled = self.stalled_percent
        if stalled is not None:
            text += f", tasks waited {stalled:.0f}% of the last minute for memory"
        step = "free memory, or add some: reads come from the disk when the page cache is small"
        if stalled is not None and stalled >= STALL_RED:
            return red("page cache", "", text, step)
        scarce = self.available_bytes < AVAILABLE_AMBER * self.total_bytes
        if scarce or (stalled is not None and stalled >= STALL_AMBER):
            return amber("page cache", "", text, step)
        return green("page cache", "", text)


@dataclass(frozen=True, slots=True)
class ZooKeeperServer:
    """What one ZooKeeper server says of itself (`srvr`)."""

    address: str
    connect_ms: float = 0.0
    failure: str | None = None
    mode: str | None = None
    """leader, follower or standalone; None if it may not say."""
    average_ms: float | None = None
    outstanding: int = 0

    def judge(self) -> Finding:
        """Return whether it serves, and how fast."""
        if self.failure is not None:
            step = "check zookeeper.connect; start the server, and look at its log"
            return red("zookeeper", self.address, self.failure, step)
        text = f"{self.mode or 'reached'} ({self.connect_ms:.1f} ms)"
        if self.average_ms is not None:
            text += f", requests take {self.average_ms:g} ms, {self.outstanding} outstanding"
        slowest_ms = max(self.connect_ms, self.average_ms or 0.0)
        step = "give ZooKeeper a disk of its own, and look at the network between here and there"
        if slowest_ms >= ZOOKEEPER_RED_MS:
            return red("zookeeper", self.address, text, step)
        if slowest_ms >= ZOOKEEPER_AMBER_MS or self.outstanding >= OUTSTANDING_AMBER:
            return amber("zookeeper", self.address, text, step)
        return green("zookeeper", self.address, text)
