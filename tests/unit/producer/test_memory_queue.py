"""Memory is given in turn: order of rings, with the accumulator and no threads."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from barnabas.producer.accumulator import Refusal
from barnabas.producer.memory_queue import MemoryQueue, MemoryTurn
from barnabas.producer.preparation import plain_size

BATCH = 1000
MEMORY = 16 * BATCH


class Caller:
    """Somebody who sends one record, and waits in turn."""

    def __init__(self, world: World, name: str, size: int, known: bool = True) -> None:
        self.world = world
        self.name = name
        self.value = b"x" * size
        self.tries = 0
        self.future: Any = None
        arguments = ("t", self.value, None, None, None, None)
        self.turn = MemoryTurn(world.queue, self.rung, plain_size(arguments) if known else 0)

    def rung(self) -> None:
        self.world.rung.append(self)

    def send(self) -> bool:
        """Try once; ask for a turn if there is no memory."""
        self.tries += 1
        taken = self.world.accumulator.append(
            "t", self.value, partition=self.world.next_partition(), in_turn=self.turn.held
        )
        if taken is Refusal.MEMORY:
            self.turn.ask()
            return False
        assert not isinstance(taken, Refusal), taken
        self.future = taken
        self.world.done.append(self.name)
        self.turn.leave()
        return True


class World:
    """An accumulator whose records each need a batch of their own."""

    def __init__(self, twin: Any) -> None:
        self.rung: list[Caller] = []
        self.done: list[str] = []
        self.woken = 0
        self._partition = 0
        self.pool = twin.BufferPool(MEMORY, BATCH)
        self.accumulator = twin.Accumulator(
            self.pool, wake=self.wake, choose=lambda topic: 0, wait=None, clock=lambda: 0
        )
        self.accumulator.add_topic("t", 1000)
        self.queue = MemoryQueue(self.accumulator)
        self.pool.on_room = self.queue.freed
        self.filling: list[Any] = []
        for _ in range(MEMORY // BATCH):
            future = self.accumulator.append("t", b"x", partition=self.next_partition())
            self.filling.append(future.batch)
        assert self.pool.in_use == MEMORY

    def wake(self) -> None:
        self.woken += 1

    def next_partition(self) -> int:
        self._partition += 1
        return self._partition

    def caller(self, name: str, size: int = 10, known: bool = True) -> Caller:
        return Caller(self, name, size, known)

    def settle(self) -> None:
        """Let everybody try who was rung."""
        while self.rung:
            caller = self.rung.pop(0)
            if caller.turn.held:
                caller.send()

    def free(self) -> None:
        """Acknowledge one of the batches that fill the memory."""
        self.filling.pop(0).complete(0)
        self.settle()


@pytest.fixture(params=["python", "cython"])
def world(request: pytest.FixtureRequest) -> World:
    try:
        return World(importlib.import_module(f"barnabas.producer.accumulator.{request.param}"))
    except ModuleNotFoundError as missing:
        pytest.skip(f"{missing.name} is not compiled")


@pytest.mark.parametrize("known", [True, False])
def test_a_large_record_is_not_overtaken_by_small_ones(world: World, known: bool) -> None:
    """It has three quarters of the memory to wait for; those behind it get nothing before."""
    large = world.caller("large", 12 * BATCH, known)
    smalls = [world.caller(f"small-{number}") for number in range(3)]
    for caller in (large, *smalls):
        assert not caller.send()
    world.settle()
    for freed in range(1, 17):
        late = world.caller(f"late-{freed}")
        smalls.append(late)
        assert not late.send(), "somebody who came later was given memory"
        world.free()
        if world.done:
            break
    else:
        pytest.fail("the large record was never taken")
    assert world.done[0] == "large"
    # Of an unknown size, it may be waited for all of the memory; of a known one, for no more.
    assert freed == 13 if known else freed <= 16
    assert large.tries <= 6
    while world.filling:
        world.free()
    large.future.batch.complete(0)
    world.settle()
    names = [caller.name for caller in (large, *smalls)]
    assert world.done == names[: len(world.done)]
    assert len(world.done) > 10


def test_whoever_gives_up_lets_the_next_one_try(world: World) -> None:
    """The large record ran out of time: what had added up for it is for the next ones."""
    large = world.caller("large", 12 * BATCH)
    small = world.caller("small")
    last = world.caller("last")
    for caller in (large, small, last):
        caller.send()
    world.settle()
    for _ in range(4):
        world.free()
    assert world.done == []
    large.turn.leave()
    world.settle()
    assert world.done == ["small", "last"]
    assert not world.pool.waiting
    assert world.caller("anybody").send()


def test_someone_in_the_middle_gives_up(world: World) -> None:
    """The order of the others stays."""
    callers = [world.caller(name) for name in ("a", "b", "c")]
    for caller in callers:
        caller.send()
    world.settle()
    callers[1].turn.leave()
    for _ in range(4):
        world.free()
    assert world.done == ["a", "c"]


def test_a_good_part_is_waited_for(world: World) -> None:
    """A small record is not rung for every batch, but when an eighth of the memory is free."""
    caller = world.caller("small")
    caller.send()
    world.settle()
    assert caller.tries == 2  # at first, and at once as the first in the queue
    world.free()
    assert (caller.tries, world.done) == (2, [])
    world.free()
    assert (caller.tries, world.done) == (3, ["small"])


def test_all_waiters_hear_that_the_producer_closes(world: World) -> None:
    """One after the other: each tries, is refused, and leaves."""
    callers = [world.caller(name) for name in ("a", "b", "c")]
    for caller in callers:
        caller.send()
    world.settle()
    world.accumulator.closed = True
    world.queue.freed()
    heard = []
    while world.rung:
        caller = world.rung.pop(0)
        heard.append(caller.name)
        caller.turn.leave()
    assert heard == ["a", "b", "c"]


def test_batches_that_linger_are_asked_for(world: World) -> None:
    """The sender is woken when somebody begins to wait."""
    before = world.woken
    world.caller("small").send()
    assert world.pool.waiting
    assert world.woken == before + 1
