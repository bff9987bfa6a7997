"""What a crash may leave of unflushed edits and names; test_disk.py sees it through files."""

from __future__ import annotations

from random import Random

from barnabas.simulation.platter import (
    Directory,
    Inode,
    NameChange,
    Truncate,
    Write,
    files_below,
    settle_names,
    surviving_edits,
    surviving_names,
)


def test_surviving_edits_keep_their_order_and_tear_only_the_last_write():
    edits = [Write(0, b"aaa"), Truncate(2), Write(2, b"bbb"), Write(5, b"ccc")]
    kinds = set()
    for seed in range(300):
        kept = surviving_edits(edits, Random(seed))
        torn = [edit for edit in kept if edit not in edits]
        assert len(torn) <= 1
        if torn:
            assert kept[-1] is torn[0]
            whole = edits[len(kept) - 1]
            assert isinstance(whole, Write)
            assert whole.data.startswith(torn[0].data)
            kept = kept[:-1]
        assert [edits.index(edit) for edit in kept] == sorted(edits.index(edit) for edit in kept)
        kinds.add((bool(torn), len(kept)))
    assert {(False, 0), (False, 4), (True, 0), (True, 3)} <= kinds


def test_a_lost_change_of_a_name_takes_its_followers_along():
    folder = Directory()
    first, other = Inode(0), Inode(0)
    create = NameChange([(folder, "a", first)])
    unrelated = NameChange([(folder, "x", other)])
    rename = NameChange([(folder, "a", None), (folder, "b", first)])
    outcomes = set()
    for seed in range(300):
        kept = surviving_names([create, unrelated, rename], Random(seed))
        assert rename not in kept or create in kept
        outcomes.add((create in kept, unrelated in kept, rename in kept))
    assert (True, False, True) in outcomes, "unrelated changes may be lost in any order"
    assert {(False, False, False), (True, True, True), (False, True, False)} <= outcomes


def test_only_durable_names_are_seen_after_settling():
    root, folder, kept, lost = Directory(), Directory(), Inode(0), Inode(0)
    for change in (NameChange([(root, "d", folder)]), NameChange([(folder, "kept", kept)])):
        change.apply(durable=False)
        change.apply(durable=True)
    NameChange([(folder, "a lost one", lost)]).apply(durable=False)
    assert list(files_below(root)) == [lost, kept]
    settle_names(root)
    assert list(files_below(root)) == [kept]
