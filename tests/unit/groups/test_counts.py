"""What group coordinators count, seen through the requests that cause it."""

from __future__ import annotations

from tests.unit.groups.host import Host, commit, join, leave, stable, sync

from barnabas.groups.coordinator import GroupCoordinator
from barnabas.groups.counts import GroupCounts
from barnabas.groups.options import GroupOptions
from barnabas.metrics.registry import Registry
from barnabas.model.error_codes import ErrorCode


class CountedHost(Host):
    """A host whose coordinators share their counts; the reader of the log has its own."""

    def __init__(self, options: GroupOptions | None = None) -> None:
        self.counts = GroupCounts(Registry())
        super().__init__(options, topics={"t": (b"t" * 16, 4)})

    def new_coordinator(self) -> GroupCoordinator:
        made = super().new_coordinator()
        made.__init__(  # type: ignore[misc]
            made._options, lambda: f"id{next(self._ids):04d}", made._topics, counts=self.counts
        )
        return made


def test_offsets_are_counted_when_they_come_and_go() -> None:
    host = CountedHost(GroupOptions(offsets_retention_ms=1000))
    host.ask(commit({("t", 0): 1, ("t", 1): 2, ("t", 2): 3}))
    assert host.counts.offset_commits.value == 3
    assert host.delete("g") == 0
    assert host.counts.offset_deletions.value == 3
    host.ask(commit({("t", 0): 1}))
    host.apply(host.coordinator.topics_deleted(["t"]))
    assert host.counts.offset_deletions.value == 4
    host.ask(commit({("t", 0): 1, ("t", 1): 1}))
    host.advance(5000)
    host.apply(host.coordinator.expire_offsets(host.now_ms))
    assert host.counts.offset_expirations.value == 2
    assert host.counts.offset_commits.value == 6


def test_a_classic_rebalance_takes_from_the_first_join_to_the_assignment() -> None:
    host = CountedHost(GroupOptions(initial_rebalance_delay_ms=3000))
    token = host.send(join("", "i"), 9)
    host.advance(3000)
    member = host.answers[token].member_id
    assert host.counts.classic_rebalances.value == 0
    host.advance(500)
    host.ask(sync(member, 1, {member: b"a"}))
    assert host.counts.classic_rebalances.value == 1
    assert (host.counts.classic_ms.count, host.counts.classic_ms.total) == (1, 3500)


def test_a_rebalance_that_begins_again_is_one() -> None:
    """A member joins while others wait for their assignment: they waited since the beginning."""
    host = CountedHost(GroupOptions(initial_rebalance_delay_ms=0))
    first = host.ask(join("", "i"), 9).member_id
    host.advance(1000)
    second = host.send(join("", "j"), 9)
    host.advance(1000)
    again = host.send(join(first, "i"), 9)
    generation = host.answers[again].generation_id
    leader = host.answers[again].leader
    other = host.answers[second].member_id
    assert {first, other} >= {leader}
    host.ask(sync(leader, generation, {first: b"a", other: b"b"}))
    assert (host.counts.classic_ms.count, host.counts.classic_ms.total) == (1, 2000)


def test_an_assignment_that_was_not_stored_goes_on() -> None:
    host = CountedHost(GroupOptions(initial_rebalance_delay_ms=0))
    member = host.ask(join("", "i"), 9).member_id
    host.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    host.ask(sync(member, 1, {member: b"a"}))
    host.fail_with = None
    group = host.coordinator.groups["g"]
    assert group.rebalance_began_ms == host.now_ms


def test_a_group_that_everyone_leaves_has_no_length() -> None:
    host = CountedHost()
    member = stable(host)
    counted = host.counts.classic_ms.count
    host.ask(leave((member, "i")))
    assert host.coordinator.groups["g"].is_empty
    assert host.coordinator.groups["g"].rebalance_began_ms == -1
    assert host.counts.classic_ms.count == counted
