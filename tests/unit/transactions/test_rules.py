"""Every request against every state: what is told, and what is written before."""

import dataclasses

import pytest

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.transactions import rules
from barnabas.transactions.rules import NEEDS_PRODUCER_ID, Verdict
from barnabas.transactions.state import State
from barnabas.transactions.transaction import LAST_EPOCH, Producer, Transaction

S = State
A, B = TopicPartition("a", 0), TopicPartition("b", 1)
ID, EPOCH, FRESH = 9, 4, 77
OWNER = Producer(ID, EPOCH)
STORED = [s for s in State if s not in (S.DEAD, S.PREPARE_EPOCH_FENCE)]
NOW_MS = 1_000


def at(state: State, **changes: object) -> Transaction:
    """Make a transaction of the owner in a state."""
    is_open = not state.is_idle
    transaction = Transaction(
        ID,
        EPOCH,
        60_000,
        500,
        state,
        frozenset({A}) if is_open else frozenset(),
        start_ms=-1 if state is S.EMPTY else 400,
    )
    return dataclasses.replace(transaction, **changes)  # type: ignore[arg-type]


def ask(request: str, current: Transaction | None, producer: Producer = OWNER) -> Verdict:
    """Put one of the requests to the rules."""
    match request:
        case "init":
            return rules.initialise(current, None, 1_000, FRESH, NOW_MS)
        case "init expecting":
            return rules.initialise(current, producer, 1_000, FRESH, NOW_MS)
        case "add":
            return rules.add_partitions(current, producer, frozenset({B}), NOW_MS)
        case "add again":
            return rules.add_partitions(current, producer, frozenset({A}), NOW_MS)
        case "verify":
            return Verdict(rules.verify(current, producer))
        case "commit" | "abort":
            return rules.end(current, producer, committed=request == "commit", now_ms=NOW_MS)
        case _:
            return rules.end_with_new_epoch(
                current,
                producer,
                committed=request == "commit, new epoch",
                fresh_producer_id=FRESH,
                now_ms=NOW_MS,
            )


# Per request and state: the code, the state that is written (None for nothing), its epoch.
EXPECTED: dict[str, dict[State, tuple[int, State | None, int]]] = {
    "init": {
        S.EMPTY: (0, S.EMPTY, EPOCH + 1),
        S.ONGOING: (51, S.PREPARE_ABORT, EPOCH + 1),
        S.PREPARE_COMMIT: (51, None, 0),
        S.PREPARE_ABORT: (51, None, 0),
        S.COMPLETE_COMMIT: (0, S.EMPTY, EPOCH + 1),
        S.COMPLETE_ABORT: (0, S.EMPTY, EPOCH + 1),
    },
    "init expecting": {
        S.EMPTY: (0, S.EMPTY, EPOCH + 1),
        S.ONGOING: (51, S.PREPARE_ABORT, EPOCH + 1),
        S.PREPARE_COMMIT: (51, None, 0),
        S.PREPARE_ABORT: (51, None, 0),
        S.COMPLETE_COMMIT: (0, S.EMPTY, EPOCH + 1),
        S.COMPLETE_ABORT: (0, S.EMPTY, EPOCH + 1),
    },
    "add": {
        S.EMPTY: (0, S.ONGOING, EPOCH),
        S.ONGOING: (0, S.ONGOING, EPOCH),
        S.PREPARE_COMMIT: (51, None, 0),
        S.PREPARE_ABORT: (51, None, 0),
        S.COMPLETE_COMMIT: (0, S.ONGOING, EPOCH),
        S.COMPLETE_ABORT: (0, S.ONGOING, EPOCH),
    },
    "add again": {
        S.EMPTY: (0, S.ONGOING, EPOCH),
        S.ONGOING: (0, None, 0),
        S.PREPARE_COMMIT: (51, None, 0),
        S.PREPARE_ABORT: (51, None, 0),
        S.COMPLETE_COMMIT: (0, S.ONGOING, EPOCH),
        S.COMPLETE_ABORT: (0, S.ONGOING, EPOCH),
    },
    "verify": {
        S.EMPTY: (0, None, 0),
        S.ONGOING: (0, None, 0),
        S.PREPARE_COMMIT: (51, None, 0),
        S.PREPARE_ABORT: (51, None, 0),
        S.COMPLETE_COMMIT: (0, None, 0),
        S.COMPLETE_ABORT: (0, None, 0),
    },
    "commit": {
        S.EMPTY: (48, None, 0),
        S.ONGOING: (0, S.PREPARE_COMMIT, EPOCH),
        S.PREPARE_COMMIT: (51, None, 0),
        S.PREPARE_ABORT: (48, None, 0),
        S.COMPLETE_COMMIT: (0, None, 0),
        S.COMPLETE_ABORT: (48, None, 0),
    },
    "abort": {
        S.EMPTY: (48, None, 0),
        S.ONGOING: (0, S.PREPARE_ABORT, EPOCH),
        S.PREPARE_COMMIT: (48, None, 0),
        S.PREPARE_ABORT: (51, None, 0),
        S.COMPLETE_COMMIT: (48, None, 0),
        S.COMPLETE_ABORT: (0, None, 0),
    },
    "commit, new epoch": {
        S.EMPTY: (48, None, 0),
        S.ONGOING: (0, S.PREPARE_COMMIT, EPOCH + 1),
        S.PREPARE_COMMIT: (51, None, 0),
        S.PREPARE_ABORT: (51, None, 0),
        S.COMPLETE_COMMIT: (48, None, 0),
        S.COMPLETE_ABORT: (48, None, 0),
    },
    "abort, new epoch": {
        S.EMPTY: (0, S.COMPLETE_ABORT, EPOCH + 1),
        S.ONGOING: (0, S.PREPARE_ABORT, EPOCH + 1),
        S.PREPARE_COMMIT: (51, None, 0),
        S.PREPARE_ABORT: (51, None, 0),
        S.COMPLETE_COMMIT: (0, S.COMPLETE_ABORT, EPOCH + 1),
        S.COMPLETE_ABORT: (0, S.COMPLETE_ABORT, EPOCH + 1),
    },
}
BY_PRODUCER = [request for request in EXPECTED if not request.startswith("init")]


@pytest.mark.parametrize("state", STORED)
@pytest.mark.parametrize("request_", EXPECTED)
def test_the_owner_in_every_state(request_: str, state: State) -> None:
    code, target_state, epoch = EXPECTED[request_][state]
    verdict = ask(request_, at(state))
    assert verdict.code == code
    if target_state is None:
        assert verdict.target is None
    else:
        assert verdict.target is not None
        assert verdict.target.state is target_state
        assert verdict.target.producer == Producer(ID, epoch)
        assert verdict.target.last_update_ms == NOW_MS


@pytest.mark.parametrize("state", STORED)
@pytest.mark.parametrize("request_", BY_PRODUCER)
def test_nobody_else_has_a_say(request_: str, state: State) -> None:
    current = at(state)
    for epoch in (EPOCH - 1, EPOCH + 1):
        assert ask(request_, current, Producer(ID, epoch)) == Verdict(ErrorCode.PRODUCER_FENCED)
    other = Producer(ID + 1, EPOCH)
    assert ask(request_, current, other) == Verdict(ErrorCode.INVALID_PRODUCER_ID_MAPPING)


@pytest.mark.parametrize("request_", BY_PRODUCER)
def test_an_unknown_id_belongs_to_nobody(request_: str) -> None:
    assert ask(request_, None) == Verdict(ErrorCode.INVALID_PRODUCER_ID_MAPPING)


@pytest.mark.parametrize("request_", ["init", "init expecting"])
def test_an_unknown_id_gets_a_fresh_producer_with_epoch_0(request_: str) -> None:
    verdict = ask(request_, None)
    assert verdict == Verdict(ErrorCode.NONE, Transaction(FRESH, 0, 1_000, NOW_MS))
    assert rules.initialise(None, None, 1_000, None, NOW_MS) == NEEDS_PRODUCER_ID


@pytest.mark.parametrize("state", STORED)
@pytest.mark.parametrize(
    "expected", [Producer(ID, EPOCH - 1), Producer(ID, EPOCH + 1), Producer(ID + 1, EPOCH)]
)
def test_a_wrong_expectation_is_fenced_and_leaves_the_owner_alone(
    state: State, expected: Producer
) -> None:
    verdict = ask("init expecting", at(state), expected)
    assert verdict.target is None
    assert verdict.code == (51 if state.is_decided else 90)


def test_a_repeated_expectation_gets_the_same_answer_until_someone_else_comes() -> None:
    first = ask("init expecting", at(S.EMPTY)).target
    assert first is not None
    assert first.last_epoch == EPOCH
    assert ask("init expecting", first, OWNER) == Verdict(ErrorCode.NONE)
    other = ask("init", first).target
    assert other is not None
    assert ask("init expecting", other, OWNER) == Verdict(ErrorCode.PRODUCER_FENCED)


def test_a_producer_that_fences_its_own_transaction_is_known_when_it_comes_back() -> None:
    fenced = ask("init expecting", at(S.ONGOING), OWNER).target
    assert fenced is not None
    complete = fenced.completed(NOW_MS)
    assert ask("init expecting", complete, OWNER) == Verdict(ErrorCode.NONE)
    assert complete.granted == Producer(ID, EPOCH + 1)
    by_other = ask("init", at(S.ONGOING)).target
    assert by_other is not None
    verdict = ask("init expecting", by_other.completed(NOW_MS), OWNER)
    assert verdict == Verdict(ErrorCode.PRODUCER_FENCED)


@pytest.mark.parametrize("epoch", [LAST_EPOCH, LAST_EPOCH + 1])
@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_without_a_further_epoch_init_gives_a_fresh_id(state: State, epoch: int) -> None:
    current = at(state, producer_epoch=epoch)
    assert rules.initialise(current, None, 1_000, None, NOW_MS) == NEEDS_PRODUCER_ID
    target = ask("init", current).target
    assert target is not None
    assert target.producer == Producer(FRESH, 0)
    assert target.previous_producer_id == ID


def test_an_exhausted_producer_that_repeats_its_init_gets_the_fresh_id_again() -> None:
    exhausted = Producer(ID, LAST_EPOCH)
    target = ask("init expecting", at(S.EMPTY, producer_epoch=LAST_EPOCH), exhausted).target
    assert target is not None
    assert ask("init expecting", target, exhausted) == Verdict(ErrorCode.NONE)
    stranger = Producer(ID + 5, LAST_EPOCH)
    assert ask("init expecting", target, stranger) == Verdict(ErrorCode.PRODUCER_FENCED)


def test_the_last_epoch_but_one_is_still_raised() -> None:
    target = ask("init", at(S.EMPTY, producer_epoch=LAST_EPOCH - 1)).target
    assert target is not None
    assert target.producer == Producer(ID, LAST_EPOCH)


REPEATED = {
    # The end that raised the epoch, and what its repetition is told before and after the markers.
    ("commit, new epoch", "commit, new epoch"): (51, 0),
    ("abort, new epoch", "abort, new epoch"): (51, 0),
    ("commit, new epoch", "abort, new epoch"): (48, 48),
    ("abort, new epoch", "commit, new epoch"): (48, 48),
}


@pytest.mark.parametrize(("first", "again"), REPEATED)
@pytest.mark.parametrize("epoch", [EPOCH, LAST_EPOCH])
def test_a_repeated_end_is_known_by_the_epoch_before(first: str, again: str, epoch: int) -> None:
    producer = Producer(ID, epoch)
    decided = ask(first, at(S.ONGOING, producer_epoch=epoch), producer).target
    assert decided is not None
    complete = decided.completed(NOW_MS)
    codes = (ask(again, decided, producer).code, ask(again, complete, producer).code)
    assert codes == REPEATED[first, again]
    assert complete.granted == (Producer(FRESH, 0) if epoch == LAST_EPOCH else Producer(ID, 5))


@pytest.mark.parametrize("epoch", [EPOCH, LAST_EPOCH])
@pytest.mark.parametrize("request_", ["add", "verify", "abort, new epoch", "commit, new epoch"])
def test_a_producer_ahead_of_its_markers_is_told_to_wait(request_: str, epoch: int) -> None:
    producer = Producer(ID, epoch)
    decided = ask("commit, new epoch", at(S.ONGOING, producer_epoch=epoch), producer).target
    assert decided is not None
    assert ask(request_, decided, decided.granted) == Verdict(ErrorCode.CONCURRENT_TRANSACTIONS)


def test_an_end_with_a_new_epoch_asks_for_an_id_when_epochs_run_out() -> None:
    verdict = rules.end_with_new_epoch(
        at(S.ONGOING, producer_epoch=LAST_EPOCH),
        Producer(ID, LAST_EPOCH),
        committed=True,
        fresh_producer_id=None,
        now_ms=NOW_MS,
    )
    assert verdict == NEEDS_PRODUCER_ID


def test_an_abort_by_the_coordinator_is_no_end_of_the_producer() -> None:
    """After a time-out the old epoch is fenced, even though it is just one behind."""
    target = rules.time_out(at(S.ONGOING), 400 + 60_001)
    assert target is not None
    for request_ in ("commit, new epoch", "abort, new epoch", "commit", "abort"):
        for current in (target, target.completed(NOW_MS)):
            assert ask(request_, current, OWNER) == Verdict(ErrorCode.PRODUCER_FENCED)


@pytest.mark.parametrize("state", STORED)
def test_only_open_transactions_time_out_and_only_after_their_time(state: State) -> None:
    assert rules.time_out(at(state), 400 + 60_000) is None
    target = rules.time_out(at(state), 400 + 60_001)
    if state is S.ONGOING:
        assert target is not None
        assert (target.state, target.producer) == (S.PREPARE_ABORT, Producer(ID, EPOCH + 1))
    else:
        assert target is None


@pytest.mark.parametrize("state", STORED)
def test_only_idle_ids_expire_and_only_after_their_time(state: State) -> None:
    assert rules.expire(at(state), 10_000, 500 + 9_999) is None
    target = rules.expire(at(state), 10_000, 500 + 10_000)
    assert (target is not None) == state.is_idle
    assert target is None or target.state is S.DEAD
