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
        doc="Principals that need no ACL, separated by semicolons.",
    )
    authorizer_class_name: str = option(
        "authorizer.class.name",
        "string",
        default="",
        refused=SECURITY,
        doc="What decides who may do what.",
    )
    _without_effect = reserved(
        """
        allow.everyone.if.no.acl.found             boolean     false                 no      SECURITY  Whether a resource without ACLs is open to all.
        principal.builder.class                    class       -                     broker  SECURITY  What turns a connection into a principal.
        connections.max.reauth.ms                  long        0                     no      SECURITY  Time after which a client must authenticate again; 0 never.
        delegation.token.secret.key                password    -                     no      SECURITY  Secret that signs delegation tokens; none disables them.
        delegation.token.master.key                password    -                     no      SECURITY  Older name of delegation.token.secret.key.
        delegation.token.max.lifetime.ms           long:1..    604800000             no      SECURITY  Longest life of a delegation token.
        delegation.token.expiry.time.ms            long:1..    86400000              no      SECURITY  Time by which a renewal extends a delegation token.
        delegation.token.expiry.check.interval.ms  long:1..    3600000               no      SECURITY  How often expired delegation tokens are removed.
        password.encoder.secret                    password    -                     no      SECURITY  Secret that encrypts passwords among dynamic options.
        password.encoder.old.secret                password    -                     no      SECURITY  Former secret, while passwords are encrypted anew.
        password.encoder.cipher.algorithm          string      AES/CBC/PKCS5Padding  no      JAVA      Cipher that encrypts passwords.
        password.encoder.iterations                int:1024..  4096                  no      SECURITY  Rounds of the derivation of that cipher's key.
        password.encoder.key.length                int:8..     128                   no      SECURITY  Length of that cipher's key.
        password.encoder.keyfactory.algorithm      string      -                     no      JAVA      Derivation of that cipher's key.
        security.providers                         string      -                     no      JAVA      Java security providers.
        """  # noqa: E501
    )
