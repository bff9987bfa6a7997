"""Gives a connection a principal, as authentication would."""

from __future__ import annotations

from tests.unit.broker.serving import Serving, Wire

from barnabas.security.principal import Principal
from barnabas.wire.messages.api_versions import ApiVersionsRequest


def authenticate(serving: Serving, wire: Wire, principal: Principal) -> None:
    """Set the principal of a connection; the broker finds it by the software that it names."""
    software = f"test-{wire.socket.getsockname()[1]}"
    request = ApiVersionsRequest(client_software_name=software, client_software_version="1.0")
    assert wire.ask(request, 3).error_code == 0

    def set_principal() -> None:
        (session,) = (
            connection.session
            for listener in serving.broker.parts.network._listeners
            for connection in listener.connections
            if connection.session.software_name == software
        )
        session.principal = principal

    serving.inside(set_principal)
