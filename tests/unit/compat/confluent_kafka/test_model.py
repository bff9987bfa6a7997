"""The small values that several calls take or return."""

from __future__ import annotations

import pytest

from barnabas.compat.confluent_kafka import ConsumerGroupState, ElectionType, Node, Uuid
from barnabas.compat.confluent_kafka.model import member, uuid_of
from barnabas.model.ids import Uuid as OurUuid


def test_members_are_given_as_such_or_by_name_or_number() -> None:
    for given in (ElectionType.UNCLEAN, "unclean", "UNCLEAN", 1):
        assert member(ElectionType, given) is ElectionType.UNCLEAN
    with pytest.raises(ValueError, match="'soon': must be one of PREFERRED, UNCLEAN"):
        member(ElectionType, "soon")
    with pytest.raises(ValueError, match="7"):
        member(ElectionType, 7)
    with pytest.raises(TypeError):
        member(ElectionType, 1.5)  # type: ignore[arg-type]
    assert ConsumerGroupState.STABLE < ConsumerGroupState.EMPTY


def test_uuids() -> None:
    uuid = Uuid(1, -2)
    assert (uuid.get_most_significant_bits(), uuid.get_least_significant_bits()) == (1, -2)
    assert str(uuid) == "AAAAAAAAAAH__________g"
    assert uuid == uuid_of(OurUuid((1).to_bytes(8) + b"\xff" * 7 + b"\xfe"))
    assert hash(uuid) == hash(Uuid(1, -2))
    assert uuid != 1


def test_nodes() -> None:
    assert str(Node(3, "h", 9092)).strip() == "(3) h:9092"
    assert str(Node(3, "h", 9092, "r")) == "(3) h:9092 (Rack - r)"
