"""Brokers, and one of them."""

from __future__ import annotations

from tests.unit.console.site import Site, text_of


def test_the_list_has_addresses_replicas_and_disks(site: Site) -> None:
    site.create_topic("of-brokers", 3)
    [row] = site.get("/brokers.json").json()["rows"]
    port = site.serving.address[1]
    assert (row["name"], row["host"], row["role"]) == (0, f"127.0.0.1:{port}", "controller")
    assert row["replicas"] >= 3
    assert row["free"] > 0


def test_a_broker_shows_directories_request_times_and_options(site: Site) -> None:
    page = text_of(site.page("/brokers/0"))
    assert site.serving.options["log.dirs"] in page
    assert "online" in page
    assert "Metadata" in page
    assert "log.dirs" in page
    assert "file" in page
    answer = site.get("/brokers/7")
    assert answer.status_code == 404
    assert "Broker 7 is not alive" in text_of(answer.text)
    assert site.get("/brokers/x").status_code == 404
