"""Names in paths."""

from __future__ import annotations

import pytest
from starlette.exceptions import HTTPException
from starlette.routing import Route

from barnabas.console.segments import SegmentConvertor, register


@pytest.mark.parametrize("name", ["orders", "a/b", "..", "ä ö", "%41", "\0", "?x#y"])
def test_a_name_goes_there_and_back(name: str) -> None:
    convertor = SegmentConvertor()
    sent = convertor.to_string(name)
    assert "/" not in sent
    assert convertor.convert(sent) == name


def test_what_is_not_utf8_is_not_found() -> None:
    with pytest.raises(HTTPException) as rejected:
        SegmentConvertor().convert("%ff")
    assert rejected.value.status_code == 404


def test_routes_can_name_it() -> None:
    register()
    register()
    route = Route("/groups/{group:segment}/lag", lambda request: None)
    match, scope = route.matches({"type": "http", "method": "GET", "path": "/groups/a%2Fb/lag"})
    assert scope["path_params"] == {"group": "a/b"}
    assert match.value == 2
