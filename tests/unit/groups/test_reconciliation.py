"""The steps of one member from what it has to what it should have."""

from __future__ import annotations

from barnabas.groups.reconciliation import (
    NONE,
    NOTHING,
    Current,
    IdPartition,
    MemberState,
    Partitions,
    reconcile,
)

T = b"t" * 16


def parts(*numbers: int) -> Partitions:
    return frozenset(IdPartition(T, n) for n in numbers)


def step(
    current: Current,
    target: Partitions,
    epoch: int,
    owned: Partitions | None,
    held: Partitions = NONE,
) -> Current:
    return reconcile(current, target, epoch, owned, lambda partition: partition not in held)


def test_new_member_gets_what_is_free() -> None:
    assert step(NOTHING, parts(1, 2), 5, NONE) == Current(5, 0, MemberState.STABLE, parts(1, 2))


def test_new_member_waits_for_what_others_hold() -> None:
    waiting = step(NOTHING, parts(1, 2), 5, NONE, held=parts(2))
    assert waiting == Current(5, 0, MemberState.UNRELEASED, parts(1))
    assert step(waiting, parts(1, 2), 5, parts(1), held=parts(2)) == waiting
    assert step(waiting, parts(1, 2), 5, None) == Current(5, 0, MemberState.STABLE, parts(1, 2))


def test_member_gives_back_before_it_advances() -> None:
    stable = Current(5, 4, MemberState.STABLE, parts(1, 2))
    asked = step(stable, parts(2, 3), 6, parts(1, 2))
    assert asked == Current(5, 4, MemberState.UNREVOKED, parts(2), parts(1))
    assert step(asked, parts(2, 3), 6, None) == asked
    assert step(asked, parts(2, 3), 6, parts(1, 2)) == asked
    assert step(asked, parts(2, 3), 6, parts(2)) == Current(6, 5, MemberState.STABLE, parts(2, 3))


def test_member_that_reports_nothing_is_asked_to_give_back() -> None:
    stable = Current(5, 4, MemberState.STABLE, parts(1))
    assert step(stable, NONE, 6, None).state is MemberState.UNREVOKED


def test_target_that_changes_while_giving_back() -> None:
    asked = Current(5, 4, MemberState.UNREVOKED, parts(2), parts(1))
    assert step(asked, parts(3), 8, parts(2)) == Current(
        6, 5, MemberState.UNREVOKED, NONE, parts(2)
    )


def test_nothing_happens_when_nothing_is_new() -> None:
    stable = Current(5, 4, MemberState.STABLE, parts(1))
    assert step(stable, parts(1), 5, parts(1)) is stable
    assert step(stable, parts(1), 6, None) == Current(6, 5, MemberState.STABLE, parts(1))
