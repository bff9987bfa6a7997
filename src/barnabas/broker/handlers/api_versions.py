"""ApiVersions: which APIs and versions this broker serves, from the one table of handlers.

v3 added the client's software name, which is validated; v4 may list features that begin at version
0. As in Kafka, clients are only offered to push metrics where that is configured: librdkafka logs
a line when it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.wire.apis import API_BY_NAME, OWN_KEYS_FROM
from barnabas.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from barnabas.wire.software_name import is_software_name

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request

TELEMETRY_KEYS = frozenset(
    API_BY_NAME[name].key for name in ("GetTelemetrySubscriptions", "PushTelemetry")
)
OWN_SOFTWARE = "barnabas"
"""A client of this name also gets the APIs that are not Kafka's."""


def handle(broker: Broker, request: Request[ApiVersionsRequest]) -> ApiVersionsResponse:
    """List the served APIs."""
    body = request.body
    if request.version >= 3:
        name, version = body.client_software_name, body.client_software_version
        if not (is_software_name(name) and is_software_name(version)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        request.session.software_name, request.session.software_version = name, version
    is_own = request.session.software_name == OWN_SOFTWARE
    hidden = frozenset() if broker.telemetry.is_wanted else TELEMETRY_KEYS
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(
                api_key=served.api.key,
                min_version=served.first_version,
                max_version=served.last_version,
            )
            for served in broker.served_to(request.session).values()
            if (served.api.key < OWN_KEYS_FROM or is_own) and served.api.key not in hidden
        ]
    )


def refuse(
    request: ApiVersionsRequest, code: ErrorCode, message: str | None
) -> ApiVersionsResponse:
    """Answer with an error."""
    return ApiVersionsResponse(error_code=code)
