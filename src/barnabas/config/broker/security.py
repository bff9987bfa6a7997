"""Principals, ACLs, delegation tokens and stored secrets."""

from __future__ import annotations

from barnabas.config.option import Password, Section, option
from barnabas.config.reasons import JAVA, SECURITY


class SecurityOptions(Section):
    """Principals, ACLs, delegation tokens and stored secrets."""

    super_users: str = option(
        "super.users",
        "string",
        default="",
        reserved=SECURITY,
        doc="Principals that need no ACL, separated by semicolons.",
    )
    authorizer_class_name: str = option(
        "authorizer.class.name",
        "string",
        default="",
        refused=SECURITY,
        doc="What decides who may do what.",
    )
    allow_everyone_if_no_acl_found: bool = option(
        "allow.everyone.if.no.acl.found",
        "boolean",
        default=False,
        reserved=SECURITY,
        doc="Whether a resource without ACLs is open to all.",
    )
    principal_builder_class: str | None = option(
        "principal.builder.class",
        "class",
        default=None,
        dynamic="broker",
        reserved=SECURITY,
        doc="What turns a connection into a principal.",
    )
    connections_max_reauth_ms: int = option(
        "connections.max.reauth.ms",
        "long",
        default=0,
        reserved=SECURITY,
        doc="Time after which a client must authenticate again; 0 never.",
    )
    delegation_token_secret_key: Password | None = option(
        "delegation.token.secret.key",
        "password",
        default=None,
        reserved=SECURITY,
        doc="Secret that signs delegation tokens; none disables them.",
    )
    delegation_token_master_key: Password | None = option(
        "delegation.token.master.key",
        "password",
        default=None,
        reserved=SECURITY,
        doc="Older name of delegation.token.secret.key.",
    )
    delegation_token_max_lifetime_ms: int = option(
        "delegation.token.max.lifetime.ms",
        "long",
        default=604_800_000,
        at_least=1,
        reserved=SECURITY,
        doc="Longest life of a delegation token.",
    )
    delegation_token_expiry_time_ms: int = option(
        "delegation.token.expiry.time.ms",
        "long",
        default=86_400_000,
        at_least=1,
        reserved=SECURITY,
        doc="Time by which a renewal extends a delegation token.",
    )
    delegation_token_expiry_check_interval_ms: int = option(
        "delegation.token.expiry.check.interval.ms",
        "long",
        default=3_600_000,
        at_least=1,
        reserved=SECURITY,
        doc="How often expired delegation tokens are removed.",
    )
    password_encoder_secret: Password | None = option(
        "password.encoder.secret",
        "password",
        default=None,
        reserved=SECURITY,
        doc="Secret that encrypts passwords among dynamic options.",
    )
    password_encoder_old_secret: Password | None = option(
        "password.encoder.old.secret",
        "password",
        default=None,
        reserved=SECURITY,
        doc="Former secret, while passwords are encrypted anew.",
    )
    password_encoder_cipher_algorithm: str = option(
        "password.encoder.cipher.algorithm",
        "string",
        default="AES/CBC/PKCS5Padding",
        reserved=JAVA,
        doc="Cipher that encrypts passwords.",
    )
    password_encoder_iterations: int = option(
        "password.encoder.iterations",
        "int",
        default=4_096,
        at_least=1024,
        reserved=SECURITY,
        doc="Rounds of the derivation of that cipher's key.",
    )
    password_encoder_key_length: int = option(
        "password.encoder.key.length",
        "int",
        default=128,
        at_least=8,
        reserved=SECURITY,
        doc="Length of that cipher's key.",
    )
    password_encoder_keyfactory_algorithm: str | None = option(
        "password.encoder.keyfactory.algorithm",
        "string",
        default=None,
        reserved=JAVA,
        doc="Derivation of that cipher's key.",
    )
    security_providers: str | None = option(
        "security.providers",
        "string",
        default=None,
        reserved=JAVA,
        doc="Java security providers.",
    )
