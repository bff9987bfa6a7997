"""Filters of ACLs: exact, any, and everything that concerns a name."""

from __future__ import annotations

import pytest

from barnabas.security.acl import AclAuthorizer, Binding, BindingFilter, Entry, Pattern
from barnabas.security.acl.binding import PatternType, Permission
from barnabas.security.authorizer import Operation, ResourceType

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
READ = Entry("User:a", "*", Operation.READ, Permission.ALLOW)
WRITE = Entry("User:b", "10.0.0.1", Operation.WRITE, Permission.DENY)

BINDINGS = {
    "orders": Binding(Pattern(TOPIC, "orders"), READ),
    "ord*": Binding(Pattern(TOPIC, "ord", PREFIXED), READ),
    "orders*": Binding(Pattern(TOPIC, "orders", PREFIXED), WRITE),
    "all": Binding(Pattern(TOPIC, "*"), WRITE),
    "group": Binding(Pattern(GROUP, "orders"), READ),
}


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (BindingFilter(), set(BINDINGS)),
        (BindingFilter(GROUP), {"group"}),
        (BindingFilter(TOPIC, "orders"), {"orders", "orders*"}),
        (BindingFilter(TOPIC, "orders", LITERAL), {"orders"}),
        (BindingFilter(TOPIC, "orders", PREFIXED), {"orders*"}),
        (BindingFilter(TOPIC, "orders", match=True), {"orders", "ord*", "orders*", "all"}),
        (BindingFilter(TOPIC, "order", match=True), {"ord*", "all"}),
        (BindingFilter(TOPIC, "*", match=True), {"all"}),
        (BindingFilter(TOPIC, "*", LITERAL), {"all"}),
        (BindingFilter(principal="User:a"), {"orders", "ord*", "group"}),
        (BindingFilter(host="10.0.0.1"), {"orders*", "all"}),
        (BindingFilter(host="*"), {"orders", "ord*", "group"}),
        (BindingFilter(operation=Operation.WRITE), {"orders*", "all"}),
        (BindingFilter(permission=Permission.DENY, pattern_type=LITERAL), {"all"}),
        (BindingFilter(operation=Operation.ALL), set()),
    ],
)
def test_matches(wanted: BindingFilter, names: set[str]) -> None:
    assert {name for name, binding in BINDINGS.items() if wanted.matches(binding)} == names
    acls = AclAuthorizer()
    acls.load(BINDINGS.values())
    assert set(acls.find(wanted)) == {BINDINGS[name] for name in names}
