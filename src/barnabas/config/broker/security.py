"""Principals, ACLs, delegation tokens and stored secrets."""

from __future__ import annotations

from barnabas.config.option import Section, option, reserved
from barnabas.config.reasons import SECURITY


class SecurityOptions(Section):
    """Principals, ACLs, delegation tokens and stored secrets."""

    super_users: str = option(
        "super.users",
        "string",
        default="",
        reserved=SECURITY,
        doc="Principals that bypass ACLs, separated by semicolons.",
    )
    authorizer_class_name: str = option(
        "authorizer.class.name",
        "string",
        default="",
        refused=SECURITY,
        doc="Class of the authorizer.",
    )
    _without_effect = reserved(
        """
        allow.everyone.if.no.acl.found             boolean     false                 no      SECURITY  Whether everyone may access a resource without ACLs.
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
