"""Principals, ACLs, delegation tokens and stored secrets."""

from __future__ import annotations

from barnabas.config.option import Password, Section, option, reserved
from barnabas.model.errors import ConfigError

AUTHORIZERS = (
    "kafka.security.authorizer.AclAuthorizer",
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "barnabas.security.acl.AclAuthorizer",
)
"""Names of the one authorizer; the first two are those of Kafka's authorizers."""


def parse_super_users(text: str) -> tuple[tuple[str, str], ...]:
    """Return the types and names of super users; names may contain commas and colons."""
    principals = []
    for part in text.split(";"):
        if part.strip():
            kind, colon, name = part.strip().partition(":")
            if not colon or not kind:
                raise ConfigError(
                    f"super.users={text}: {part.strip()} must be Type:name, as in User:admin"
                )
            principals.append((kind, name))
    return tuple(principals)


class SecurityOptions(Section):
    """Principals, ACLs, delegation tokens and stored secrets."""

    super_users: str = option(
        "super.users",
        "string",
        default="",
        doc="Principals that bypass ACLs, separated by semicolons.",
    )
    authorizer_class_name: str = option(
        "authorizer.class.name",
        "string",
        default="",
        choices=AUTHORIZERS,
        doc="Authorizer that decides by ACLs; all its names mean the same. Empty for none.",
    )
    allow_everyone_if_no_acl_found: bool = option(
        "allow.everyone.if.no.acl.found",
        "boolean",
        default=False,
        doc="Whether everyone may access a resource without ACLs.",
    )
    connections_max_reauth_ms: int = option(
        "connections.max.reauth.ms",
        "long",
        default=0,
        doc="Time after which a client must reauthenticate; 0 for never.",
    )
    delegation_token_secret_key: Password | None = option(
        "delegation.token.secret.key",
        "password",
        default=None,
        doc="Secret that signs delegation tokens, the same on all brokers; unset disables them.",
    )
    delegation_token_master_key: Password | None = option(
        "delegation.token.master.key",
        "password",
        default=None,
        doc="Older name of delegation.token.secret.key.",
    )
    delegation_token_max_lifetime_ms: int = option(
        "delegation.token.max.lifetime.ms",
        "long",
        default=604_800_000,
        at_least=1,
        doc="Maximum lifetime of a delegation token.",
    )
    delegation_token_expiry_time_ms: int = option(
        "delegation.token.expiry.time.ms",
        "long",
        default=86_400_000,
        at_least=1,
        doc="How long a delegation token is valid without renewal.",
    )
    delegation_token_expiry_check_interval_ms: int = option(
        "delegation.token.expiry.check.interval.ms",
        "long",
        default=3_600_000,
        at_least=1,
        doc="How often expired delegation tokens are removed.",
    )
    password_encoder_secret: Password | None = option(
        "password.encoder.secret",
        "password",
        default=None,
        doc="Secret that encrypts passwords in dynamic configs; unset refuses to change them.",
    )
    password_encoder_old_secret: Password | None = option(
        "password.encoder.old.secret",
        "password",
        default=None,
        doc="Previous secret, which still decrypts passwords that were stored by it.",
    )
    password_encoder_iterations: int = option(
        "password.encoder.iterations",
        "int",
        default=4096,
        at_least=1024,
        doc="Iterations of the key derivation.",
    )
    password_encoder_key_length: int = option(
        "password.encoder.key.length",
        "int",
        default=128,
        at_least=8,
        doc="Length of the cipher's key in bits: 128, 192 or 256.",
    )
    _without_effect = reserved(
        """
        principal.builder.class                    class       -                     broker  JAVA      Class that derives the principal of a connection.
        password.encoder.cipher.algorithm          string      AES/CBC/PKCS5Padding  no      JAVA      Cipher that encrypts passwords.
        password.encoder.keyfactory.algorithm      string      -                     no      JAVA      Key derivation algorithm.
        security.providers                         string      -                     no      JAVA      Java security providers.
        """  # noqa: E501
    )
