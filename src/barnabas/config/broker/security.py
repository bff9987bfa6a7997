"""Principals, ACLs, delegation tokens and stored secrets."""

from __future__ import annotations

from barnabas.config.option import Section, option, reserved
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
    _without_effect = reserved(
        """
        principal.builder.class                    class       -                     broker  SECURITY  Class that derives the principal of a connection.
        connections.max.reauth.ms                  long        0                     no      SECURITY  Time after which a client must reauthenticate; 0 for never.
        delegation.token.secret.key                password    -                     no      SECURITY  Secret that signs delegation tokens; unset disables them.
        delegation.token.master.key                password    -                     no      SECURITY  Older name of delegation.token.secret.key.
        delegation.token.max.lifetime.ms           long:1..    604800000             no      SECURITY  Maximum lifetime of a delegation token.
        delegation.token.expiry.time.ms            long:1..    86400000              no      SECURITY  How long a delegation token is valid without renewal.
        delegation.token.expiry.check.interval.ms  long:1..    3600000               no      SECURITY  How often expired delegation tokens are removed.
        password.encoder.secret                    password    -                     no      SECURITY  Secret that encrypts passwords in dynamic configs.
        password.encoder.old.secret                password    -                     no      SECURITY  Previous secret, for re-encrypting passwords after a change.
        password.encoder.cipher.algorithm          string      AES/CBC/PKCS5Padding  no      JAVA      Cipher that encrypts passwords.
        password.encoder.iterations                int:1024..  4096                  no      SECURITY  Iterations of the key derivation.
        password.encoder.key.length                int:8..     128                   no      SECURITY  Length of that cipher's key.
        password.encoder.keyfactory.algorithm      string      -                     no      JAVA      Key derivation algorithm.
        security.providers                         string      -                     no      JAVA      Java security providers.
        """  # noqa: E501
    )
