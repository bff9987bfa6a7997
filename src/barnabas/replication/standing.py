"""Whether a broker may still speak for what it leads, when its session may have ended.

A session lives for its timeout, counted from the last request that the coordination service
answered. Until shortly before that a broker *holds its lease*: nobody can have been elected in its
place. From half of the timeout on it is *in doubt* and asks the other brokers, so that it
knows enough when the lease ends. From then on it speaks only while

- a majority of the brokers that it last knew, itself included, can be reached, and each of those
  was without contact to the service when it was last asked, or at most TRUST_MS before: then the
  service is away, and nobody is elected; and
- none knows a newer controller epoch, a newer leader epoch of one of this broker's partitions, or a
  cluster without this broker.

Otherwise it is silent: others may lead. A session that the service has ended is certain news; then
only a new registration helps. A broker that knows no other one is never silent.

What holds: no broker that lost its session answers for what it led more than TRUST_MS after another
one could have begun to. Not covered is a service that only a minority of the brokers reaches, from
which the others are cut off, too.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

ASK_FROM = 1 / 2
LEASE = 0.9
"""Shares of the session's timeout. What the lease leaves out is for a clock that is slower than the
service's, and for contact that one server of an ensemble has yet to pass on.
"""
IN_CONTACT = 1 / 3
"""A session known to be alive within this share of its timeout is in contact.

Those who lose the service at the same time all say so when the first of their leases ends.
"""
ASK_EVERY_MS = 200
TRUST_MS = 1_000
"""For so long an answer counts, from when it was asked for."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What another broker said."""

    asked_ms: float
    is_member: bool
    """Whether it counts the asking broker among those that are alive."""
    in_contact: bool | None = None
    """Whether it is in contact with the coordination service; None where it cannot say."""
    controller_epoch: int = -1


class Verdict(NamedTuple):
    """Whether to speak, why not, and until when that holds if nothing happens."""

    speaks: bool
    reason: str
    until_ms: float


class Standing:
    """One broker's knowledge of whether it is still what it was elected to be."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self._alive_ms = 0.0
        self._timeout_ms = math.inf
        self._ended = False
        self._answers: dict[int, Answer] = {}
        self._out_of_contact_ms: dict[int, float] = {}
        """When others were last asked and were not in contact with the service either."""

    @property
    def lease_ends_ms(self) -> float:
        """Return until when nobody can have been elected in this broker's place."""
        return self._alive_ms + self._timeout_ms * LEASE

    @property
    def asks_from_ms(self) -> float:
        """Return when this broker begins to ask others, unless there is contact before."""
        return math.inf if self._ended else self._alive_ms + self._timeout_ms * ASK_FROM

    @property
    def has_ended(self) -> bool:
        """Return whether the session is known to have ended, and no other has begun."""
        return self._ended

    # what it is told

    def was_alive(self, at_ms: float, timeout_ms: float) -> bool:
        """Note that a request sent at a time was answered; return whether that is news."""
        self._timeout_ms = timeout_ms
        if self._ended or at_ms <= self._alive_ms:
            return False
        self._alive_ms = at_ms
        # What others said before that is no longer of interest.
        for broker_id in [b for b, each in self._answers.items() if each.asked_ms <= at_ms]:
            del self._answers[broker_id]
        return True

    def session_ended(self) -> None:
        """Note that the service has ended the session: the broker is a member no longer."""
        self._ended = True
        self._forget()

    def registered(self, at_ms: float, timeout_ms: float) -> None:
        """Note that the broker is a member again, in a session that was alive at a time."""
        self._ended = False
        self._alive_ms, self._timeout_ms = at_ms, timeout_ms
        self._forget()

    def _forget(self) -> None:
        self._answers.clear()
        self._out_of_contact_ms.clear()

    def answered(self, broker_id: int, answer: Answer) -> None:
        """Note what another broker said; an answer that was overtaken says nothing."""
        known = self._answers.get(broker_id)
        if answer.asked_ms > self._alive_ms and (known is None or answer.asked_ms > known.asked_ms):
            self._answers[broker_id] = answer
            if not answer.in_contact:
                self._out_of_contact_ms[broker_id] = answer.asked_ms

    # what it says

    def verdict(
        self, now_ms: float, brokers: Collection[int], controller_epoch: int, fenced: str | None
    ) -> Verdict:
        """Decide whether to speak.

        `brokers` are those that were alive when the controller last told, `controller_epoch` is its
        epoch, and `fenced` says of which partition somebody has shown a newer leader epoch.
        """
        others = {each for each in brokers if each != self._broker_id}
        if not others:
            return Verdict(True, "no other broker is known", math.inf)
        if self._ended:
            return Verdict(False, "its session has ended", math.inf)
        if now_ms < self.lease_ends_ms:
            return Verdict(True, "its session is alive", self.lease_ends_ms)
        if fenced is not None:
            return Verdict(
                False, f"another broker knows a newer leader epoch of {fenced}", math.inf
            )
        reached = []
        for broker_id, answer in self._answers.items():
            news = self._news(broker_id, answer, controller_epoch)
            if news is not None:
                return Verdict(False, news, math.inf)
            if answer.asked_ms + TRUST_MS <= now_ms:
                continue
            # One that has come back into contact lately: so may this broker, in a moment.
            out_of_contact_ms = self._out_of_contact_ms.get(broker_id, -math.inf)
            if out_of_contact_ms + TRUST_MS <= now_ms:
                told = f"broker {broker_id} is in contact with the coordination service"
                return Verdict(False, told, math.inf)
            if broker_id in others:
                reached.append(out_of_contact_ms)
        needed = (len(others) + 1) // 2  # beside itself
        if len(reached) < needed:
            counted = f"{len(reached) + 1} of {len(others) + 1} brokers"
            return Verdict(False, f"it reaches only {counted}, itself included", math.inf)
        until_ms = sorted(reached, reverse=True)[needed - 1] + TRUST_MS
        return Verdict(True, "no broker that it reaches is in contact with the service", until_ms)

    def _news(self, broker_id: int, answer: Answer, controller_epoch: int) -> str | None:
        if answer.controller_epoch > controller_epoch:
            return (
                f"broker {broker_id} knows controller epoch {answer.controller_epoch}, "
                f"not {controller_epoch}"
            )
        if not answer.is_member:
            return f"for broker {broker_id} it is not a member of the cluster"
        return None
