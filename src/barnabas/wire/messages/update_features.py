"""UpdateFeatures (API key 57): change finalized feature levels."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class FeatureUpdateKey(Struct):
    feature: str = field("string")
    max_version_level: int = field("int16")
    allow_downgrade: bool = field("bool", versions="0")
    upgrade_type: int = field("int8", versions="1+", default=1)


@message(key=57, versions="0-2", flexible="0+")
class UpdateFeaturesRequest(Message):
    timeout_ms: int = field("int32", default=60000)
    feature_updates: list[FeatureUpdateKey] = field([FeatureUpdateKey])
    validate_only: bool = field("bool", versions="1+")


@struct
class UpdatableFeatureResult(Struct):
    feature: str = field("string")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)


@message(key=57, versions="0-2", flexible="0+")
class UpdateFeaturesResponse(Message):
    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)
    results: list[UpdatableFeatureResult] = field(
        [UpdatableFeatureResult], versions="0-1", ignorable=True
    )
