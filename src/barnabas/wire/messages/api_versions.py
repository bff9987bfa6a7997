"""ApiVersions (API key 18): what a broker can be asked, and in which versions."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@message(key=18, versions="0-4", flexible="3+")
class ApiVersionsRequest(Message):
    client_software_name: str = field("string", versions="3+", ignorable=True)
    client_software_version: str = field("string", versions="3+", ignorable=True)


@struct
class ApiVersion(Struct):
    api_key: int = field("int16")
    min_version: int = field("int16")
    max_version: int = field("int16")


@struct
class SupportedFeatureKey(Struct):
    name: str = field("string")
    min_version: int = field("int16")
    max_version: int = field("int16")


@struct
class FinalizedFeatureKey(Struct):
    name: str = field("string")
    max_version_level: int = field("int16")
    min_version_level: int = field("int16")


@message(key=18, versions="0-4", flexible="3+")
class ApiVersionsResponse(Message):
    error_code: int = field("int16")
    api_keys: list[ApiVersion] = field([ApiVersion])
    throttle_time_ms: int = field("int32", versions="1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = field(
        [SupportedFeatureKey], versions="3+", tag=0, ignorable=True
    )
    finalized_features_epoch: int = field("int64", versions="3+", default=-1, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = field(
        [FinalizedFeatureKey], versions="3+", tag=2, ignorable=True
    )
    zk_migration_ready: bool = field("bool", versions="3+", tag=3, ignorable=True)
