"""Where the pages have what an entry of the diary is about."""

from __future__ import annotations

import pytest

from barnabas.console.subject_links import link_of


@pytest.mark.parametrize(
    ("subject", "link"),
    [
        ("group:a/b", "/groups/a%2Fb"),
        ("topic:orders", "/topics/orders"),
        ("broker:2", "/brokers/2"),
        ("transaction:app-1", "/transactions/app-1"),
        ("client:app@10.0.0.7", "/why?of=client&name=app%4010.0.0.7"),
        ("client:10.0.0.7", "/why?of=client&name=10.0.0.7"),
        ("orders-3", "/why?of=partition&name=orders-3"),
        ("my-topic-12", "/why?of=partition&name=my-topic-12"),
        ("orders", ""),
        ("-3", ""),
        ("acl:whatever", ""),
        ("group:", ""),
    ],
)
def test_a_subject_leads_to_its_page(subject: str, link: str) -> None:
    assert link_of(subject) == link
