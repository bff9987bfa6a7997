"""ACLs: bindings, filters that find them, and the authorizer that decides by them."""

from barnabas.security.acl.authorizer import AclAuthorizer, Decision
from barnabas.security.acl.binding import (
    Binding,
    Entry,
    Pattern,
    PatternType,
    Permission,
)
from barnabas.security.acl.filter import BindingFilter

__all__ = [
    "AclAuthorizer",
    "Binding",
    "BindingFilter",
    "Decision",
    "Entry",
    "Pattern",
    "PatternType",
    "Permission",
]
