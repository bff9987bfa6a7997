"""DeleteTopics (API key 20): delete topics, by name or by id."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class DeleteTopicState(Struct):
    name: str | None = field("string", nullable=True, default=None)
    topic_id: Uuid = field("uuid")


@message(key=20, versions="0-6", flexible="4+")
class DeleteTopicsRequest(Message):
    topics: list[DeleteTopicState] = field([DeleteTopicState], versions="6+")
    topic_names: list[str] = field(["string"], versions="0-5", ignorable=True)
    timeout_ms: int = field("int32")


@struct
class DeletableTopicResult(Struct):
    name: str | None = field("string", nullable="6+")
    topic_id: Uuid = field("uuid", versions="6+", ignorable=True)
    error_code: int = field("int16")
    error_message: str | None = field(
        "string", versions="5+", nullable=True, default=None, ignorable=True
    )


@message(key=20, versions="0-6", flexible="4+")
class DeleteTopicsResponse(Message):
    throttle_time_ms: int = field("int32", versions="1+", ignorable=True)
    responses: list[DeletableTopicResult] = field([DeletableTopicResult])
