"""DescribeUserScramCredentials (API key 50): SCRAM mechanisms of users, without their secrets."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class UserName(Struct):
    name: str = field("string")


@message(key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest(Message):
    users: list[UserName] | None = field([UserName], nullable=True)


@struct
class CredentialInfo(Struct):
    mechanism: int = field("int8")
    iterations: int = field("int32")


@struct
class DescribeUserScramCredentialsResult(Struct):
    user: str = field("string")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)
    credential_infos: list[CredentialInfo] = field([CredentialInfo])


@message(key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse(Message):
    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)
    results: list[DescribeUserScramCredentialsResult] = field([DescribeUserScramCredentialsResult])
