"""AlterUserScramCredentials (API key 51): set or remove SCRAM credentials."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class ScramCredentialDeletion(Struct):
    name: str = field("string")
    mechanism: int = field("int8")


@struct
class ScramCredentialUpsertion(Struct):
    name: str = field("string")
    mechanism: int = field("int8")
    iterations: int = field("int32")
    salt: bytes = field("bytes")
    salted_password: bytes = field("bytes")


@message(key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsRequest(Message):
    deletions: list[ScramCredentialDeletion] = field([ScramCredentialDeletion])
    upsertions: list[ScramCredentialUpsertion] = field([ScramCredentialUpsertion])


@struct
class AlterUserScramCredentialsResult(Struct):
    user: str = field("string")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)


@message(key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse(Message):
    throttle_time_ms: int = field("int32")
    results: list[AlterUserScramCredentialsResult] = field([AlterUserScramCredentialsResult])
