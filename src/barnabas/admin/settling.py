"""Requests about several things, repeated until each has a result or a final failure.

Every admin call about several things ends here: the failure of one thing is its outcome and does
not affect the others; things with a transient failure are asked about again, together with all
that are still open, as long as there is time. Then the last failure of a thing is its outcome. The
result has an entry for everything that was asked about, in that order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from barnabas.admin.failures import coded
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.retry import Verdict, verdict
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.request_errors import UnknownError

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")

Ask = Callable[[list[Key]], Awaitable[Mapping[Key, Answer | RequestError]]]
"""Asks once about some things, and returns the outcome for each."""


def is_passing(key: object, failure: RequestError) -> bool:
    """Return whether a failure is transient."""
    return verdict(failure) is not Verdict.FAIL


async def settle(
    client: ClusterClient,
    keys: Iterable[Key],
    ask: Ask[Key, Answer],
    *,
    passing: Callable[[Key, RequestError], bool] = is_passing,
    topics: Iterable[str] = (),
    timeout_ms: float | None = None,
) -> dict[Key, Answer | RequestError]:
    """Return a result or a failure for every key.

    `topics` are refreshed if a failure is caused by stale metadata. Raises final failures of `ask`
    if nothing is known about any key by then.
    """
    wanted = list(dict.fromkeys(keys))
    if not wanted:
        return {}
    settled: dict[Key, Answer | RequestError] = {}
    waiting: dict[Key, RequestError] = {}

    async def attempt() -> None:
        missing = [key for key in wanted if key not in settled]
        outcomes = await ask(missing)
        waiting.clear()
        for key in missing:
            outcome = outcomes[key] if key in outcomes else _unanswered(key)
            if isinstance(outcome, RequestError) and passing(key, outcome):
                waiting[key] = outcome
            else:
                settled[key] = outcome
        if waiting:
            raise next(iter(waiting.values()))

    try:
        await client.retrying(attempt, topics=topics, timeout_ms=timeout_ms)
    except BarnabasError as failure:
        if not settled and not waiting:
            raise
        for key in wanted:
            settled.setdefault(key, waiting.get(key) or coded(failure))
    return {key: settled[key] for key in wanted}


def settled_or_raise(outcomes: Mapping[Key, Answer | RequestError]) -> dict[Key, Answer]:
    """Return the results if there is no failure among them; otherwise raise the first."""
    answers: dict[Key, Answer] = {}
    for key, outcome in outcomes.items():
        if isinstance(outcome, RequestError):
            raise outcome
        answers[key] = outcome
    return answers


def _unanswered(key: object) -> RequestError:
    return UnknownError(f"{key}: missing in the broker's response")
