"""Label texts: built once, dropped when they are no longer used."""

from __future__ import annotations

from barnabas.broker.monitoring.label_texts import LabelTexts


def test_texts_live_from_scrape_to_scrape() -> None:
    texts = LabelTexts("topic", "partition")
    texts.begin()
    first = texts.of(("t", 0))
    assert first == 'topic="t",partition="0"'
    assert texts.of(("t", 0)) is first
    texts.begin()
    assert texts.of(("t", 0)) is first


def test_texts_of_what_is_gone_are_dropped() -> None:
    texts = LabelTexts("topic")
    for scrape in range(5):
        texts.begin()
        for number in range(100):
            texts.of((f"t-{scrape}-{number}",))
    texts.begin()
    assert len(texts) == 100
