"""The tree as a machine: undoing, sessions by the clock, and a model it must agree with."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.coordination.contract import (
    CoordinationError,
    Create,
    Delete,
    Event,
    NoNode,
    SessionExpired,
    Set,
)
from barnabas.coordination.tree import Node, Tree


def content(tree: Tree, session_id: int) -> dict[str, tuple[bytes, object]]:
    """Walk the whole tree from the root."""
    found = {}
    waiting = ["/"]
    while waiting:
        path = waiting.pop()
        found[path] = tree.get(path, session_id)
        waiting += [f"{path.rstrip('/')}/{name}" for name in tree.children(path, session_id)]
    return found


def test_a_session_expires_when_it_was_not_heard_of_for_its_timeout():
    tree = Tree()
    quick, slow, forever = (
        tree.open_session(0, 100),
        tree.open_session(0, 500),
        tree.open_session(0),
    )
    assert tree.next_expiry_ms() == 100
    assert tree.expired(99) == []
    assert tree.expired(100) == [quick]
    tree.touch(quick, 99)
    assert tree.expired(198) == []
    assert tree.expired(10_000) == [quick, slow]
    tree.touch(forever, 5)
    tree.end_session(quick)
    tree.end_session(slow)
    assert tree.next_expiry_ms() is None
    with pytest.raises(SessionExpired):
        tree.touch(quick, 200)
    with pytest.raises(SessionExpired):
        tree.end_session(quick)


def test_ending_a_session_is_one_transaction():
    tree = Tree()
    one = tree.open_session(0)
    tree.apply([Create("/a", ephemeral=True), Create("/b", ephemeral=True), Create("/c")], one)
    before = tree.zxid
    outcome = tree.end_session(one)
    assert tree.zxid == before + 1
    assert [(change.path, change.after) for change in outcome.changes] == [
        ("/a", None),
        ("/b", None),
    ]
    assert len(tree) == 2


def test_undo_does_not_bring_back_nodes_of_an_ended_session():
    tree = Tree()
    one, two = tree.open_session(0), tree.open_session(0)
    tree.apply([Create("/live"), Create("/live/1", ephemeral=True)], one)
    ended = tree.end_session(one)
    later = tree.apply([Delete("/live")], two)
    tree.undo(ended.changes + later.changes)
    assert tree.children("/live", two) == []


def test_a_tree_cannot_hold_a_node_without_its_parent():
    with pytest.raises(NoNode, match="/a is missing, the parent of /a/b"):
        Tree([("/a/b", Node(b"", 0, 1, 1))])
    tree = Tree([("/a/b", Node(b"x", 3, 2, 9)), ("/a", Node(b"", 0, 1, 1, 0, 7))], zxid=9)
    session = tree.open_session(0)
    assert tree.children("/a", session) == ["b"]
    created = tree.create(Create("/a/n", sequence=True), session)
    assert created.results == ["/a/n0000000007"]
    assert tree.zxid == 10


NAMES = st.sampled_from(["/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/deep"])
OPERATIONS = st.one_of(
    st.builds(Create, NAMES, st.binary(max_size=3), st.booleans(), st.booleans()),
    st.builds(Set, NAMES, st.binary(max_size=3), st.sampled_from([-1, 0, 1])),
    st.builds(Delete, NAMES, st.sampled_from([-1, 0])),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(OPERATIONS, min_size=1, max_size=4), max_size=12), st.data())
def test_undoing_any_tail_of_writes_gives_back_the_tree_before_it(transactions, data):
    tree = Tree()
    session = tree.open_session(0)
    states = [content(tree, session)]
    changes = [[]]
    for transaction in transactions:
        try:
            outcome = tree.apply(transaction, session)
        except CoordinationError:
            assert content(tree, session) == states[-1], "a refused transaction left a trace"
            continue
        states.append(content(tree, session))
        changes.append(outcome.changes)
    back_to = data.draw(st.integers(0, len(states) - 1))
    tree.undo([change for part in changes[back_to + 1 :] for change in part])
    assert content(tree, session) == states[back_to]


@settings(max_examples=100, deadline=None)
@given(st.lists(OPERATIONS, max_size=20))
def test_a_watch_fires_exactly_when_what_it_watches_changed(operations):
    tree = Tree()
    session = tree.open_session(0)
    for operation in operations:
        fired: list[Event] = []
        before = {}
        for path in ("/a", "/a/x", "/b"):
            tree.exists(path, session, fired.append)
            if tree.exists(path, session):
                before[path] = (tree.get(path, session)[1].mzxid, tree.children(path, session))
                tree.children(path, session, fired.append)
        try:
            outcome = tree.apply([operation], session)
        except CoordinationError:
            continue
        told = {fire.event.path for fire in outcome.fired}
        for path in ("/a", "/a/x", "/b"):
            after = None
            if tree.exists(path, session):
                after = (tree.get(path, session)[1].mzxid, tree.children(path, session))
            assert (path in told) == (before.get(path) != after)
