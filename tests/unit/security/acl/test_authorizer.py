"""Decisions by ACLs: Kafka's rules, one by one."""

from __future__ import annotations

import random

import pytest

from barnabas.security.acl import (
    AclAuthorizer,
    Binding,
    Entry,
    Pattern,
    PatternType,
    Permission,
)
from barnabas.security.acl import authorizer as module
from barnabas.security.authorizer import (
    CLUSTER_NAME,
    Operation,
    ResourceType,
    authorized_bits,
)
from barnabas.security.principal import Principal

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
TOPIC = ResourceType.TOPIC
READ, WRITE, DESCRIBE, ALL = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL
ALLOW, DENY = Permission.ALLOW, Permission.DENY
PREFIXED = PatternType.PREFIXED


def acl(
    operation: Operation = READ,
    name: str = "t",
    permission: Permission = ALLOW,
    *,
    prefix: bool = False,
    principal: str = "User:alice",
    host: str = "*",
    resource: ResourceType = TOPIC,
) -> Binding:
    pattern = Pattern(resource, name, PREFIXED if prefix else PatternType.LITERAL)
    return Binding(pattern, Entry(principal, host, operation, permission))


def authorizer(*bindings: Binding, **options: bool) -> AclAuthorizer:
    loaded = AclAuthorizer([Principal("User", "admin")], **options)
    loaded.load(bindings)
    return loaded


def allows(
    acls: AclAuthorizer,
    operation: Operation = READ,
    name: str = "t",
    principal: Principal = ALICE,
    host: str = "10.0.0.1",
) -> bool:
    return acls.allows(principal, host, operation, TOPIC, name)


def test_nothing_is_allowed_before_the_first_load() -> None:
    """Not even where everyone would be; super users need no ACLs."""
    acls = AclAuthorizer([ALICE], allow_everyone=True)
    assert not allows(acls, principal=BOB)
    assert not acls.allows_any(BOB, "h", WRITE, TOPIC)
    assert acls.explain(BOB, "h", READ, TOPIC, "t").reason == "ACLs are not loaded yet"
    assert allows(acls)
    acls.load([])
    assert allows(acls, principal=BOB)


def test_super_users_match_by_type_and_name() -> None:
    acls = authorizer(acl(permission=DENY, operation=ALL, principal="User:*"))
    assert allows(acls, principal=Principal("User", "admin"))
    assert not allows(acls, principal=Principal("Group", "admin"))
    assert acls.explain(Principal("User", "admin"), "h", READ, TOPIC, "t").reason == "super user"


@pytest.mark.parametrize(
    ("binding", "allowed"),
    [
        (acl(), True),
        (acl(name="*"), True),
        (acl(name="", prefix=True), True),
        (acl(name="t", prefix=True), True),
        (acl(name="tt", prefix=True), False),
        (acl(name="*", prefix=True), False),
        (acl(name="T"), False),
        (acl(principal="User:*"), True),
        (acl(principal="User:bob"), False),
        (acl(principal="Group:*"), False),
        (acl(principal="user:alice"), False),
        (acl(host="10.0.0.1"), True),
        (acl(host="10.0.0.2"), False),
        (acl(host="10.0.0.0/8"), False),
        (acl(ALL), True),
        (acl(WRITE), False),
        (acl(resource=ResourceType.GROUP), False),
    ],
    ids=str,
)
def test_what_matches(binding: Binding, allowed: bool) -> None:
    assert allows(authorizer(binding)) is allowed


@pytest.mark.parametrize(
    ("seen", "written"),
    [
        ("::1", "0:0:0:0:0:0:0:1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8::1", "2001:DB8:0:0:0:0:0:1"),
    ],
)
def test_addresses_match_in_any_spelling(seen: str, written: str) -> None:
    """Sockets and Java write one address in different ways."""
    assert allows(authorizer(acl(host=written)), host=seen)
    assert allows(authorizer(acl(host=seen)), host=written)


def test_a_deny_wins_whatever_its_pattern() -> None:
    """A prefixed DENY beats a literal ALLOW, a wildcard DENY any."""
    for denying in (
        acl(permission=DENY),
        acl(permission=DENY, name="*"),
        acl(permission=DENY, name="t", prefix=True),
        acl(ALL, permission=DENY),
        acl(permission=DENY, principal="User:*"),
    ):
        acls = authorizer(acl(), denying)
        decision = acls.explain(ALICE, "h", READ, TOPIC, "t")
        assert (decision.allowed, decision.rule) == (False, denying)
    assert allows(authorizer(acl(), acl(permission=DENY, host="10.9.9.9")))


def test_implied_operations() -> None:
    """READ, WRITE, DELETE and ALTER allow DESCRIBE; a DENY implies nothing."""
    for operation in (READ, WRITE, Operation.DELETE, Operation.ALTER):
        assert allows(authorizer(acl(operation)), DESCRIBE)
    for operation in (Operation.CREATE, Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS):
        assert not allows(authorizer(acl(operation)), DESCRIBE)
    assert allows(authorizer(acl(Operation.ALTER_CONFIGS)), Operation.DESCRIBE_CONFIGS)
    assert not allows(authorizer(acl(READ)), Operation.DESCRIBE_CONFIGS)
    assert allows(authorizer(acl(DESCRIBE), acl(READ, permission=DENY)), DESCRIBE)
    denied = authorizer(acl(READ), acl(DESCRIBE, permission=DENY))
    assert allows(denied, READ)
    assert not allows(denied, DESCRIBE)


def test_authorized_bits_of_all_but_one() -> None:
    """As seen on Apache Kafka: ALLOW ALL and DENY READ leave 0xdf0 of a topic."""
    acls = authorizer(acl(ALL), acl(READ, permission=DENY))
    assert authorized_bits(acls, ALICE, "h", TOPIC, "t") == 0xDF0


def test_everyone_if_no_acl_is_found() -> None:
    """One ACL of anyone, also of a prefix or the wildcard, closes the resource."""
    assert allows(authorizer(allow_everyone=True))
    assert allows(authorizer(acl(name="u"), allow_everyone=True), principal=BOB)
    for closing in (acl(), acl(name="*"), acl(name="t", prefix=True)):
        assert not allows(authorizer(closing, allow_everyone=True), principal=BOB)


def test_explanations() -> None:
    binding = acl(host="0:0:0:0:0:0:0:1")
    acls = authorizer(binding, acl(name="x"))
    assert acls.explain(ALICE, "::1", READ, TOPIC, "t").rule == binding
    assert acls.explain(ALICE, "::2", READ, TOPIC, "t").reason == "no ACL matches"
    assert acls.explain(ALICE, "::1", READ, TOPIC, "y").reason == "the resource has no ACLs"
    text = "User:alice has ALLOW permission for READ from host 0:0:0:0:0:0:0:1 on Topic:LITERAL:t"
    assert str(binding) == text


def test_changes_count_at_once() -> None:
    """An answer that was remembered does not outlive the ACL that it came from."""
    acls = authorizer()
    assert not allows(acls)
    assert not acls.allows_any(ALICE, "h", READ, TOPIC)
    acls.set_entries(*_entries(acl()))
    assert allows(acls)
    assert acls.allows_any(ALICE, "h", READ, TOPIC)
    acls.set_entries(Pattern(TOPIC, "t"), [])
    assert not allows(acls)
    assert not acls.allows_any(ALICE, "h", READ, TOPIC)
    acls.set_entries(*_entries(acl(name="t", prefix=True)))
    assert allows(acls, name="tail")
    acls.load([acl(name="u")])
    assert not allows(acls, name="tail")
    assert allows(acls, name="u")
    assert [*acls.patterns] == [Pattern(TOPIC, "u")]
    assert len(acls) == 1


def _entries(binding: Binding) -> tuple[Pattern, list[Entry]]:
    return binding.pattern, [binding.entry]


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED_MAX", 10)
    acls = authorizer(acl(name="t", prefix=True))
    for number in range(100):
        assert allows(acls, name=f"t{number}")
        acls.allows_any(Principal("User", str(number)), "h", READ, TOPIC)
    assert len(acls._answers) <= 10
    assert len(acls._answers_any) <= 10


class TestAnyResource:
    """`authorizeByResourceType`: is there one topic that the principal may write to?"""

    @pytest.mark.parametrize(
        ("bindings", "allowed"),
        [
            ([], False),
            ([acl(WRITE)], True),
            ([acl(ALL)], True),
            ([acl(READ)], False),
            ([acl(WRITE), acl(WRITE, permission=DENY)], False),
            ([acl(WRITE), acl(ALL, permission=DENY)], False),
            ([acl(WRITE), acl(WRITE, "u", DENY)], True),
            ([acl(WRITE, "topic"), acl(WRITE, "to", DENY, prefix=True)], False),
            ([acl(WRITE, "topic"), acl(WRITE, "topics", DENY, prefix=True)], True),
            ([acl(WRITE, "to", prefix=True), acl(WRITE, "t", DENY, prefix=True)], False),
            ([acl(WRITE, "t", prefix=True), acl(WRITE, "to", DENY, prefix=True)], True),
            ([acl(WRITE, "t", prefix=True), acl(WRITE, "t", DENY)], True),
            ([acl(WRITE, "*"), acl(WRITE, "t", DENY, prefix=True)], True),
            ([acl(WRITE, "*"), acl(WRITE, "*", DENY)], False),
            ([acl(WRITE), acl(WRITE, "*", DENY, principal="User:*")], False),
            ([acl(WRITE), acl(WRITE, "*", DENY, principal="User:bob")], True),
            ([acl(WRITE, host="192.0.2.1")], False),
            ([acl(WRITE, principal="User:*")], True),
        ],
    )
    def test_decision(self, bindings: list[Binding], allowed: bool) -> None:
        assert authorizer(*bindings).allows_any(ALICE, "h", WRITE, TOPIC) is allowed

    def test_super_users_and_everyone(self) -> None:
        assert authorizer().allows_any(Principal("User", "admin"), "h", WRITE, TOPIC)
        assert authorizer(allow_everyone=True).allows_any(ALICE, "h", WRITE, TOPIC)
        closed = authorizer(acl(WRITE, "*", DENY), allow_everyone=True)
        assert not closed.allows_any(ALICE, "h", WRITE, TOPIC)


def plain_decision(bindings: list[Binding], operation: Operation, name: str) -> bool:
    """The rules without an index."""
    matching = [
        entry
        for pattern, entry in bindings
        if pattern.covers(name) and entry.principal in ("User:alice", "User:*")
    ]
    if any(e.permission is DENY and e.operation in (operation, ALL) for e in matching):
        return False
    implying = (READ, WRITE, Operation.DELETE, Operation.ALTER) if operation is DESCRIBE else ()
    return any(
        e.permission is ALLOW and e.operation in (operation, ALL, *implying) for e in matching
    )


def test_the_index_decides_like_a_plain_search() -> None:
    """Random ACLs, loaded, changed and removed one by one."""
    chance = random.Random(7)
    acls = authorizer()
    bindings: list[Binding] = []
    names = ["", "a", "ab", "abc", "abd", "b", "ba", "*"]
    for step in range(300):
        if bindings and chance.random() < 0.4:
            removed = bindings.pop(chance.randrange(len(bindings)))
            bindings = [each for each in bindings if each != removed]
        else:
            bindings.append(
                acl(
                    chance.choice([READ, WRITE, DESCRIBE, ALL]),
                    chance.choice(names[1:]),
                    chance.choice([ALLOW, ALLOW, DENY]),
                    prefix=chance.random() < 0.5,
                    principal=chance.choice(["User:alice", "User:bob", "User:*"]),
                )
            )
        for pattern in {each.pattern for each in bindings} | set(acls.patterns):
            acls.set_entries(pattern, [e for p, e in bindings if p == pattern])
        for name in ["a", "ab", "abc", "abcd", "b", "c"]:
            for operation in (READ, DESCRIBE):
                expected = plain_decision(bindings, operation, name)
                assert allows(acls, operation, name) is expected, (step, name, bindings)


def test_the_cluster_is_a_resource_like_others() -> None:
    acls = authorizer(acl(Operation.ALTER, CLUSTER_NAME, resource=ResourceType.CLUSTER))
    cluster = (ResourceType.CLUSTER, CLUSTER_NAME)
    assert acls.allows(ALICE, "h", Operation.ALTER, *cluster)
    assert acls.allows(ALICE, "h", DESCRIBE, *cluster)
    assert not acls.allows(ALICE, "h", Operation.CLUSTER_ACTION, *cluster)
