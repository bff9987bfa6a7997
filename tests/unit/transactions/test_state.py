"""The table of states: numbers and names of the protocol, and no step besides those listed."""

import pytest

from barnabas.transactions.state import STEPS, State, state_titled
from barnabas.transactions.transaction import Transaction

S = State

TITLES = {
    0: "Empty",
    1: "Ongoing",
    2: "PrepareCommit",
    3: "PrepareAbort",
    4: "CompleteCommit",
    5: "CompleteAbort",
    6: "Dead",
    7: "PrepareEpochFence",
}

LEGAL = {
    (S.EMPTY, S.EMPTY),
    (S.EMPTY, S.ONGOING),
    (S.EMPTY, S.PREPARE_ABORT),
    (S.EMPTY, S.DEAD),
    (S.ONGOING, S.ONGOING),
    (S.ONGOING, S.PREPARE_COMMIT),
    (S.ONGOING, S.PREPARE_ABORT),
    (S.ONGOING, S.PREPARE_EPOCH_FENCE),
    (S.PREPARE_EPOCH_FENCE, S.PREPARE_ABORT),
    (S.PREPARE_COMMIT, S.COMPLETE_COMMIT),
    (S.PREPARE_ABORT, S.COMPLETE_ABORT),
    (S.COMPLETE_COMMIT, S.EMPTY),
    (S.COMPLETE_COMMIT, S.ONGOING),
    (S.COMPLETE_COMMIT, S.PREPARE_ABORT),
    (S.COMPLETE_COMMIT, S.DEAD),
    (S.COMPLETE_ABORT, S.EMPTY),
    (S.COMPLETE_ABORT, S.ONGOING),
    (S.COMPLETE_ABORT, S.PREPARE_ABORT),
    (S.COMPLETE_ABORT, S.DEAD),
}


def test_numbers_and_titles_are_those_of_the_protocol() -> None:
    assert {int(state): state.title for state in State} == TITLES
    assert all(state_titled(title) is State(number) for number, title in TITLES.items())
    assert state_titled("ongoing") is None


@pytest.mark.parametrize("source", State)
@pytest.mark.parametrize("target", State)
def test_a_transaction_takes_the_listed_steps_and_no_other(source: State, target: State) -> None:
    transaction = Transaction(1, 0, 1, 0, state=source)
    if (source, target) in LEGAL:
        assert transaction.to(target, 5).state is target
    else:
        with pytest.raises(AssertionError, match=f"{source.title} cannot become {target.title}"):
            transaction.to(target, 5)


def test_every_state_is_reached_and_only_death_is_the_end() -> None:
    reached = {S.EMPTY}
    while True:
        further = reached | {target for source in reached for target in STEPS[source]}
        if further == reached:
            break
        reached = further
    assert reached == set(State)
    assert [state for state in State if not STEPS[state]] == [S.DEAD]


def test_states_are_idle_decided_or_on_the_way() -> None:
    assert {s for s in State if s.is_idle} == {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}
    assert {s for s in State if s.is_decided} == {S.PREPARE_COMMIT, S.PREPARE_ABORT}
