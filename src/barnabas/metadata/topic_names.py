"""The one rule for topic names, for brokers, clients and SQL: what is legal, and what collides."""

from __future__ import annotations

import re
from collections.abc import Iterable

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError

NAME_LENGTH_MAX = 249
"""A directory name holds 255 characters, of which a partition number and a dash take up to six."""

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)

DIARY_TOPIC = "__barnabas_diary"
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", DIARY_TOPIC})


def illegal_name(name: str, what: str = "topic name") -> str | None:
    """Return why a name is illegal, or None if it is legal; `what` is the kind of name."""
    if name == "":
        return f"a {what} cannot be empty"
    if name in (".", ".."):
        return f"{what} {name!r} is not allowed: it names a directory"
    if len(name) > NAME_LENGTH_MAX:
        return f"{what} of {len(name)} characters is too long: at most {NAME_LENGTH_MAX}"
    if _LEGAL_NAME.fullmatch(name) is None:
        return f"{what} {name!r} is not allowed: only letters, digits, '.', '_' and '-'"
    return None


def check_name(topic: str) -> None:
    """Raise INVALID_TOPIC_EXCEPTION, with the reason, unless the name is legal."""
    reason = illegal_name(topic)
    if reason is not None:
        raise _illegal(reason)


def check_collision(topic: str, existing: Iterable[str]) -> None:
    """Reject a name that differs from another only in '.' and '_': metrics confuse them."""
    if "." not in topic and "_" not in topic:
        return
    folded = topic.replace(".", "_")
    for other in existing:
        if other != topic and other.replace(".", "_") == folded:
            raise _illegal(f"topic name {topic!r} collides with the existing {other!r}")


def _illegal(reason: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
