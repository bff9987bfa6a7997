"""Whether a broker may still serve the partitions it leads when its session may have ended.

A session lives for its timeout, counted from the last request that the coordination service
answered. Until shortly before that a broker *holds its lease*: no other leader can have been
elected. From half of the timeout on it is *in doubt* and asks the other brokers, so that it knows
enough when the lease ends. From then on it serves only while

- a majority of the brokers that it last knew, itself included, can be reached, and each of those
  was disconnected from the service when it was last asked, or at most TRUST_MS before: then the
  service is unavailable, and no leader is elected; and
- none knows a newer controller epoch, a newer leader epoch of one of this broker's partitions, or a
  cluster without this broker.

Otherwise it is silent: others may lead. If the service has expired the session, there is no doubt,
and only a new registration helps. A broker that knows no other one is never silent.

Guarantee: no broker that lost its session serves the partitions it led for more than TRUST_MS after
another one could have begun to. Not covered is a service that only a minority of the brokers can
reach, from which the others are cut off, too.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.model.ids import NO_EPOCH

ASK_FROM = 1 / 2
LEASE = 0.9
"""Fractions of the session's timeout. What the lease leaves out allows for a clock slower than the
service's, and for a heartbeat that one server of an ensemble has yet to pass on.
"""
IN_CONTACT = 1 / 3
"""A session known to be alive within this fraction of its timeout is connected.

Brokers that lose the service at the same time all say so when the first of their leases ends.
"""
ASK_EVERY_MS = 200
TRUST_MS = 1_000
"""How long an answer counts, from when it was requested."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What another broker responded."""

    asked_ms: float
    is_member: bool
    """Whether it counts the asking broker among those that are alive."""
    in_contact: bool | None = None
    """Whether it is connected to the coordination service; None if it cannot say."""
    controller_epoch: int = NO_EPOCH


class Verdict(NamedTuple):
    """Whether to serve, why not, and until when that holds if nothing happens."""

    speaks: bool
    reason: str
    until_ms: float


class Standing:
    """One broker's knowledge of whether it is still the leader it was elected to be."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self._alive_ms = 0.0
        self._timeout_ms = math.inf
        self._ended = False
        self._answers: dict[int, Answer] = {}
        self._out_of_contact_ms: dict[int, float] = {}
        """When others were last asked and were not connected to the service either."""

    @property
    def lease_ends_ms(self) -> float:
        """Return until when no other leader can have been elected."""
        return self._alive_ms + self._timeout_ms * LEASE

    @property
    def asks_from_ms(self) -> float:
        """Return when this broker begins to ask others, unless it is connected again before."""
        return math.inf if self._ended else self._alive_ms + self._timeout_ms * ASK_FROM

    @property
    def has_ended(self) -> bool:
        """Return whether the session is known to have ended, and no other has begun."""
        return self._ended

    # events

    def was_alive(self, at_ms: float, timeout_ms: float) -> bool:
        """Record that a request sent at a time was answered; return whether that is newer."""
        self._timeout_ms = timeout_ms
        if self._ended or at_ms <= self._alive_ms:
            return False
        self._alive_ms = at_ms
        # What others responded before that is obsolete.
        for broker_id in [b for b, each in self._answers.items() if each.asked_ms <= at_ms]:
            del self._answers[broker_id]
        return True

    def session_ended(self) -> None:
        """Record that the service has expired the session: the broker is no longer a member."""
        self._ended = True
        self._forget()

    def registered(self, at_ms: float, timeout_ms: float) -> None:
        """Record that the broker is a member again, in a session that was alive at a time."""
        self._ended = False
        self._alive_ms, self._timeout_ms = at_ms, timeout_ms
        self._forget()

    def _forget(self) -> None:
        self._answers.clear()
        self._out_of_contact_ms.clear()

    def answered(self, broker_id: int, answer: Answer) -> None:
        """Record another broker's answer; an outdated one is ignored."""
        known = self._answers.get(broker_id)
        if answer.asked_ms > self._alive_ms and (known is None or answer.asked_ms > known.asked_ms):
            self._answers[broker_id] = answer
            if not answer.in_contact:
                self._out_of_contact_ms[broker_id] = answer.asked_ms

    # decisions

    def verdict(
        self, now_ms: float, brokers: Collection[int], controller_epoch: int, fenced: str | None
    ) -> Verdict:
        """Decide whether to serve.

        `brokers` are the live ones as of the controller's last update, `controller_epoch` is its
        epoch, and `fenced` is a partition for which a newer leader epoch has been seen.
        """
        others = {each for each in brokers if each != self._broker_id}
        if not others:
            return Verdict(True, "no other broker is known", math.inf)
        if self._ended:
            return Verdict(False, "its session has expired", math.inf)
        if now_ms < self.lease_ends_ms:
            return Verdict(True, "its session is alive", self.lease_ends_ms)
        if fenced is not None:
            return Verdict(
                False, f"another broker knows a newer leader epoch of {fenced}", math.inf
            )
        reached = []
        for broker_id, answer in self._answers.items():
            newer = self._newer(broker_id, answer, controller_epoch)
            if newer is not None:
                return Verdict(False, newer, math.inf)
            if answer.asked_ms + TRUST_MS <= now_ms:
                continue
            # One that has reconnected recently: so may this broker, in a moment.
            out_of_contact_ms = self._out_of_contact_ms.get(broker_id, -math.inf)
            if out_of_contact_ms + TRUST_MS <= now_ms:
                reason = f"broker {broker_id} is in contact with the coordination service"
                return Verdict(False, reason, math.inf)
            if broker_id in others:
                reached.append(out_of_contact_ms)
        needed = (len(others) + 1) // 2  # besides itself
        if len(reached) < needed:
            counted = f"{len(reached) + 1} of {len(others) + 1} brokers"
            return Verdict(False, f"it reaches only {counted}, itself included", math.inf)
        until_ms = sorted(reached, reverse=True)[needed - 1] + TRUST_MS
        return Verdict(
            True,
            "none of the brokers that it reaches is in contact with the coordination service",
            until_ms,
        )

    def _newer(self, broker_id: int, answer: Answer, controller_epoch: int) -> str | None:
        if answer.controller_epoch > controller_epoch:
            return (
                f"broker {broker_id} knows controller epoch {answer.controller_epoch}, "
                f"not {controller_epoch}"
            )
        if not answer.is_member:
            return f"broker {broker_id} does not count it as a member of the cluster"
        return None
