"""DescribeClientQuotas (API key 48): quotas that match entity filters."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class ComponentData(Struct):
    entity_type: str = field("string")
    match_type: int = field("int8")
    match: str | None = field("string", nullable=True)


@message(key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest(Message):
    components: list[ComponentData] = field([ComponentData])
    strict: bool = field("bool")


@struct
class EntityData(Struct):
    entity_type: str = field("string")
    entity_name: str | None = field("string", nullable=True)


@struct
class ValueData(Struct):
    key: str = field("string")
    value: float = field("float64")


@struct
class EntryData(Struct):
    entity: list[EntityData] = field([EntityData])
    values: list[ValueData] = field([ValueData])


@message(key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse(Message):
    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)
    entries: list[EntryData] | None = field([EntryData], nullable=True)
