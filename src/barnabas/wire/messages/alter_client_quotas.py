"""AlterClientQuotas (API key 49): set or remove quotas of entities."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class EntityData(Struct):
    entity_type: str = field("string")
    entity_name: str | None = field("string", nullable=True)


@struct
class OpData(Struct):
    key: str = field("string")
    value: float = field("float64")
    remove: bool = field("bool")


@struct
class EntryData(Struct):
    entity: list[EntityData] = field([EntityData])
    ops: list[OpData] = field([OpData])


@message(key=49, versions="0-1", flexible="1+")
class AlterClientQuotasRequest(Message):
    entries: list[EntryData] = field([EntryData])
    validate_only: bool = field("bool")


@struct
class ResponseEntryData(Struct):
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)
    entity: list[EntityData] = field([EntityData])


@message(key=49, versions="0-1", flexible="1+")
class AlterClientQuotasResponse(Message):
    throttle_time_ms: int = field("int32")
    entries: list[ResponseEntryData] = field([ResponseEntryData])
