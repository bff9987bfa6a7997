"""The mechanisms of a listener, from its options: `sasl.enabled.mechanisms` and what each needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from barnabas.config.broker import BrokerOptions, listener_prefix
from barnabas.config.jaas import JaasEntry, jaas_entry
from barnabas.model.errors import ConfigError
from barnabas.security.sasl.exchange import NewExchange
from barnabas.security.sasl.gssapi import Gssapi, kerberos
from barnabas.security.sasl.jwks import SigningKeys
from barnabas.security.sasl.jwt_validator import (
    ClaimRules,
    SignedTokens,
    UnsecuredTokens,
    check_extra,
)
from barnabas.security.sasl.kerberos_names import KerberosNames
from barnabas.security.sasl.oauthbearer import OAuthBearer, Validate
from barnabas.security.sasl.plain import Plain, plain_users
from barnabas.security.sasl.scram import Scram, ScramSecrets
from barnabas.security.sasl.scram_credentials import MECHANISMS as SCRAM

JWKS_URL = "sasl.oauthbearer.jwks.endpoint.url"
CALLBACK_HANDLER = "sasl.server.callback.handler.class"
UNSECURED_HANDLER = "OAuthBearerUnsecuredValidatorCallbackHandler"
SIGNED_HANDLER = "OAuthBearerValidatorCallbackHandler"
MODULES = {
    "PLAIN": "PlainLoginModule",
    "OAUTHBEARER": "OAuthBearerLoginModule",
    "GSSAPI": "Krb5LoginModule",
    **dict.fromkeys(SCRAM, "ScramLoginModule"),
}
"""The login module of each mechanism in a JAAS file, which may have several."""

JaasSections = Mapping[str, tuple[JaasEntry, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSources:
    """Where the mechanisms of a broker find what is not in the options of a listener."""

    scram: ScramSecrets
    signing_keys: Callable[[BrokerOptions], SigningKeys]
    """Returns the keys of an option sasl.oauthbearer.jwks.endpoint.url."""


def mechanisms_of(
    options: BrokerOptions, listener: str, sections: JaasSections, sources: SaslSources
) -> dict[str, NewExchange]:
    """Return the enabled mechanisms of a listener; raise ConfigError if one cannot be offered."""
    enabled = [name.upper() for name in options.for_listener(listener).sasl_enabled_mechanisms]
    if not enabled:
        raise ConfigError(f"sasl.enabled.mechanisms: listener {listener} needs at least one")
    return {
        mechanism: _mechanism(mechanism, options, listener, sections, sources)
        for mechanism in enabled
    }


def login_entry(
    options: BrokerOptions, listener: str, mechanism: str, sections: JaasSections
) -> JaasEntry | None:
    """Return the JAAS entry of a mechanism on a listener: of its option, else of the file."""
    name = f"{listener_prefix(listener)}{mechanism.lower()}.sasl.jaas.config"
    text = options.given.get(name)
    if text is not None:
        return jaas_entry(text, name)
    for section in (f"{listener.lower()}.KafkaServer", "KafkaServer"):
        if section in sections:
            module = MODULES.get(mechanism, "")
            for entry in sections[section]:
                if entry.module.rpartition(".")[2] == module:
                    return entry
            return None
    return None


def _mechanism(
    mechanism: str,
    options: BrokerOptions,
    listener: str,
    sections: JaasSections,
    sources: SaslSources,
) -> NewExchange:
    entry = login_entry(options, listener, mechanism, sections)
    if mechanism == "PLAIN":
        if entry is None:
            raise ConfigError(
                f"{listener_prefix(listener)}plain.sasl.jaas.config: required for PLAIN; it "
                'names the users: …PlainLoginModule required user_alice="…";'
            )
        return partial(Plain, plain_users(entry.options))
    if mechanism in SCRAM:
        return partial(Scram, SCRAM[mechanism], sources.scram)
    if mechanism == "OAUTHBEARER":
        own = options.for_listener(listener, mechanism)
        return partial(OAuthBearer, _validator(own, entry, sources))
    if mechanism == "GSSAPI":
        names = KerberosNames(
            options.for_listener(listener, mechanism).sasl_kerberos_principal_to_local_rules
        )
        return partial(Gssapi, kerberos(entry, listener), names)
    known = ", ".join(["PLAIN", *SCRAM, "OAUTHBEARER", "GSSAPI"])
    raise ConfigError(f"sasl.enabled.mechanisms={mechanism}: must be among {known}")


def _validator(options: BrokerOptions, entry: JaasEntry | None, sources: SaslSources) -> Validate:
    """Return what checks bearer tokens: never unsigned ones, unless asked for by name."""
    handler = (options.sasl_server_callback_handler_class or "").rpartition(".")[2]
    if handler == UNSECURED_HANDLER:
        return UnsecuredTokens(entry.options if entry is not None else {})
    if handler not in ("", SIGNED_HANDLER):
        raise ConfigError(
            f"{CALLBACK_HANDLER}={options.sasl_server_callback_handler_class}: "
            f"must be …{SIGNED_HANDLER} or …{UNSECURED_HANDLER}"
        )
    if not options.sasl_oauthbearer_jwks_endpoint_url:
        raise ConfigError(
            f"{JWKS_URL}: required for OAUTHBEARER; for unsigned tokens, in tests, set "
            f"{CALLBACK_HANDLER}={UNSECURED_HANDLER}"
        )
    check_extra(JWKS_URL)
    return SignedTokens(
        sources.signing_keys(options),
        ClaimRules(
            audiences=options.sasl_oauthbearer_expected_audience or (),
            issuer=options.sasl_oauthbearer_expected_issuer,
            scope_claim=options.sasl_oauthbearer_scope_claim_name,
            name_claim=options.sasl_oauthbearer_sub_claim_name,
            skew_ms=options.sasl_oauthbearer_clock_skew_seconds * 1000,
        ),
    )
