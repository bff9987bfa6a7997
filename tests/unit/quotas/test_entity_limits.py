"""Which limit applies to a client, and who shares it."""

from __future__ import annotations

from itertools import product

import pytest

from barnabas.quotas.entity_limits import (
    ABSENT,
    DEFAULT,
    UNLIMITED,
    Entity,
    EntityLimits,
    Level,
    Sharing,
)

LEVELS: list[tuple[Entity, Sharing]] = [
    (Entity("ada", "web"), Sharing("ada", "web")),
    (Entity("ada", DEFAULT), Sharing("ada", "web")),
    (Entity("ada"), Sharing("ada", None)),
    (Entity(DEFAULT, "web"), Sharing("ada", "web")),
    (Entity(DEFAULT, DEFAULT), Sharing("ada", "web")),
    (Entity(DEFAULT), Sharing("ada", None)),
    (Entity(ABSENT, "web"), Sharing(None, "web")),
    (Entity(ABSENT, DEFAULT), Sharing(None, "web")),
]


@pytest.mark.parametrize("present", list(product([False, True], repeat=8)))
def test_the_first_level_that_is_set_applies(present: tuple[bool, ...]) -> None:
    """In Kafka's order, whatever else is set."""
    limits = EntityLimits()
    chosen = [index for index, there in enumerate(present) if there]
    for index in reversed(chosen):
        limits.set(LEVELS[index][0], 100.0 + index)
    limit, sharing = limits.find("ada", "web")
    if chosen:
        assert (limit, sharing) == (100.0 + chosen[0], LEVELS[chosen[0]][1])
    else:
        assert limit == UNLIMITED


def test_under_defaults_every_client_is_on_its_own() -> None:
    """The sharing has the client's own names, never the default's."""
    limits = EntityLimits()
    limits.set(Entity(DEFAULT, DEFAULT), 1.0)
    assert limits.find("ada", "a")[1] != limits.find("ada", "b")[1]
    assert limits.find("bob", "a")[1] == Sharing("bob", "a")


def test_a_user_called_default_is_not_the_default() -> None:
    """The word in the tree is not a name."""
    limits = EntityLimits()
    limits.set(Entity(DEFAULT), 1.0)
    limits.set(Entity("<default>"), 2.0)
    assert limits.find("<default>", "")[0] == 2.0
    assert limits.find("ada", "")[0] == 1.0
    assert Level("<default>") is DEFAULT


def test_without_a_limit_the_kinds_that_were_set_decide_who_shares() -> None:
    """So that samples are there when a limit is set again."""
    limits = EntityLimits()
    assert not limits.any_ever
    assert limits.set(Entity("bob"), 1.0)
    assert limits.find("ada", "web") == (UNLIMITED, Sharing("ada", None))
    assert limits.set(Entity("bob"), None)
    assert not limits.set(Entity("bob"), None)
    assert limits.any_ever
    assert limits.find("bob", "web") == (UNLIMITED, Sharing("bob", None))
    limits.set(Entity(ABSENT, "other"), 1.0)
    assert limits.find("ada", "web") == (UNLIMITED, Sharing("ada", "web"))
    alone = EntityLimits()
    alone.set(Entity(ABSENT, "other"), 1.0)
    assert alone.find("ada", "web") == (UNLIMITED, Sharing(None, "web"))
