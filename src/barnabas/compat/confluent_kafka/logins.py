"""Logins as librdkafka's properties describe them: as a token provider, or a JAAS entry of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.compat.confluent_kafka.failures import invalid

TokenCallback = Callable[[str], Any]
"""Returns a token and when it expires; perhaps a principal and extensions, too."""

_ID = ("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.credentials.client.id")
_SECRET = ("sasl.oauthbearer.client.secret", "sasl.oauthbearer.client.credentials.client.secret")

LOGINS = (
    *_ID,
    *_SECRET,
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.extensions",
    "sasl.oauthbearer.config",
    "https.ca.location",
    "https.ca.pem",
    "sasl.kerberos.principal",
    "sasl.kerberos.keytab",
)
"""Properties that become a JAAS entry."""


def jaas_of(mechanism: str, login: Mapping[str, str]) -> str | None:
    """Return the JAAS entry that says the same; None if the mechanism needs none of it."""
    if mechanism == "OAUTHBEARER":
        return _entry("oauthbearer.OAuthBearerLoginModule", _of_endpoint(login))
    if mechanism == "GSSAPI" and "sasl.kerberos.keytab" in login:
        keytab, principal = login["sasl.kerberos.keytab"], login.get("sasl.kerberos.principal")
        if principal is None:
            raise invalid("sasl.kerberos.keytab needs sasl.kerberos.principal")
        options = {"useKeyTab": "true", "keyTab": keytab, "principal": principal}
        return _entry("com.sun.security.auth.module.Krb5LoginModule", options)
    return None


def _of_endpoint(login: Mapping[str, str]) -> dict[str, str]:
    """Return what a token endpoint is asked with."""
    wanted = {
        "clientId": _first(login, _ID),
        "clientSecret": _first(login, _SECRET),
        "scope": login.get("sasl.oauthbearer.scope"),
        "ssl.ca.location": login.get("https.ca.location"),
        "ssl.ca.pem": login.get("https.ca.pem"),
    }
    for pair in filter(None, login.get("sasl.oauthbearer.extensions", "").split(",")):
        name, equals, value = pair.partition("=")
        if not equals:
            raise invalid(f"sasl.oauthbearer.extensions: {pair} must be name=value")
        wanted[f"extension_{name.strip()}"] = value
    return {name: value for name, value in wanted.items() if value is not None}


def _first(login: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((login[name] for name in names if name in login), None)


def _entry(module: str, options: Mapping[str, str]) -> str:
    escaped = {
        name: value.replace("\\", "\\\\").replace('"', '\\"') for name, value in options.items()
    }
    return " ".join([module, "required", *(f'{name}="{escaped[name]}"' for name in escaped)]) + ";"


class TokenProvider:
    """The tokens of an `oauth_cb`, as our clients ask for them."""

    def __init__(self, function: TokenCallback, config: str) -> None:
        self._function = function
        self._config = config
        self._extensions: dict[str, str] = {}

    def token(self) -> str:
        """Return a new token."""
        given = self._function(self._config)
        self._extensions = dict(given[3]) if len(given) > 3 and given[3] else {}
        return str(given[0])

    def extensions(self) -> dict[str, str]:
        """Return the extensions that came with the token."""
        return self._extensions
