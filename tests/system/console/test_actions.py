"""Every action in a real Chromium: the preview, its confirmation, and what the cluster then says.

What the cluster has is asked through librdkafka, and what a log has is read through it.
"""

from __future__ import annotations

import warnings
from typing import Any
from urllib.parse import quote

import pytest
from confluent_kafka import (
    IsolationLevel,
    KafkaException,
    Producer,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)
from tests.system.console import contents
from tests.system.console.asking import DEADLINE_S, Make, committed, config_of, span, wait_for
from tests.system.console.chromium import Tab
from tests.system.console.cluster import ConsoleCluster

with warnings.catch_warnings():
    # kafka-python reads its message definitions in a way that Python 3.11 frowns at.
    warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
    import kafka
    from kafka.admin import KafkaAdminClient

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("console"),
]


def reorder(options: dict[str, Any], topic: str, replicas: list[int]) -> None:
    """Give the replicas of a topic's only partition in another order; librdkafka cannot do it."""
    client = KafkaAdminClient(
        bootstrap_servers=options["bootstrap.servers"],
        security_protocol=options["security.protocol"],
        sasl_mechanism=options["sasl.mechanism"],
        sasl_plain_username=options["sasl.username"],
        sasl_plain_password=options["sasl.password"],
    )
    try:
        place = kafka.TopicPartition(topic, 0)
        assert client.alter_partition_reassignments({place: replicas}) == {place: None}
    finally:
        client.close()


def confirm(tab: Tab, button: str, *shown: str) -> None:
    """Look at a preview, and confirm it."""
    tab.see("Nothing has been changed yet", *shown)
    tab.press(button)


# -- topics -----------------------------------------------------------------------------------


def test_a_topic_is_created(tab: Tab, admin: AdminClient) -> None:
    tab.open("/topics")
    with tab.page.expect_event("load"):
        tab.page.get_by_role("link", name="Create a topic").click()
    tab.field("Name").fill("made-here")
    tab.field("Partitions (empty: num.partitions)").fill("4")
    tab.field("Replicas (empty: default.replication.factor)").fill("2")
    tab.field("Configs, one name=value per line").fill("retention.ms=3600000\nsegment.ms=60000")
    tab.press("Create")
    tab.see("made-here", "4 partitions")
    found = admin.list_topics("made-here", timeout=60).topics["made-here"]
    assert [len(each.replicas) for each in found.partitions.values()] == [2] * 4
    kind = ConfigResource.Type.TOPIC
    assert config_of(admin, kind, "made-here", "retention.ms") == "3600000"
    # What is wrong is said, and what was typed stays.
    tab.open("/new-topic")
    tab.field("Name").fill("made-here")
    tab.field("Configs, one name=value per line").fill(f"retention.ms={contents.SCRIPT}")
    tab.expected = {409}
    tab.press("Create")
    tab.see(contents.SCRIPT)
    tab.expected = set()
    assert tab.field("Name").input_value() == "made-here"


def test_an_option_is_changed_and_returned(tab: Tab, admin: AdminClient, make: Make) -> None:
    name = make("options-changed")
    kind = ConfigResource.Type.TOPIC
    before = config_of(admin, kind, name, "retention.ms")
    tab.open(f"/topics/{name}")
    part = tab.unfold("Change an option")
    tab.field("Option", part).select_option("retention.ms")
    tab.field("Value", part).fill("7200000")
    tab.press("Set", part)
    assert config_of(admin, kind, name, "retention.ms") == before  # it is a preview
    confirm(tab, "Change it", str(before), "7200000")
    wait_for(lambda: config_of(admin, kind, name, "retention.ms") == "7200000", "it is changed")
    part = tab.unfold("Change an option")
    tab.field("Option", part).select_option("retention.ms")
    tab.press("Return to the default", part)
    confirm(tab, "Change it", "its default")
    wait_for(lambda: config_of(admin, kind, name, "retention.ms") == before, "it is returned")
    part = tab.unfold("Change an option")
    tab.field("Option", part).select_option("cleanup.policy")
    tab.field("Value", part).fill(contents.SCRIPT)
    tab.expected = {409}
    tab.press("Set", part)
    tab.see(contents.SCRIPT)
    tab.expected = set()


def test_partitions_are_added(tab: Tab, admin: AdminClient, make: Make) -> None:
    name = make("partitions-added", 2)
    tab.open(f"/topics/{name}")
    part = tab.unfold("Add partitions")
    tab.field("Partitions in all", part).fill("5")
    tab.press("Preview", part)
    confirm(tab, "Add them", name, "5")
    tab.see("5 partitions")
    assert len(admin.list_topics(name, timeout=60).topics[name].partitions) == 5


def test_old_records_are_deleted(tab: Tab, admin: AdminClient, make: Make) -> None:
    name = make("records-deleted", records=20)
    tab.open(f"/topics/{name}")
    part = tab.unfold("Delete old records")
    tab.field("Before offset (or: end)", part).fill("15")
    tab.press("Preview", part)
    assert span(admin, name) == (0, 20)
    confirm(tab, "Delete them", "15")
    tab.see("its old records are deleted")
    assert span(admin, name) == (15, 20)


@pytest.mark.parametrize("place", ["topic", "elections"])
def test_a_preferred_leader_is_elected(
    tab: Tab, admin: AdminClient, make: Make, cluster_options: dict[str, Any], place: str
) -> None:
    name = make(f"leaders-elected-{place}", 1, replica_assignment=[[1, 0]], replicas=-1)

    def leader() -> int:
        return admin.list_topics(name, timeout=60).topics[name].partitions[0].leader

    wait_for(lambda: _in_sync(admin, name, 2), "both replicas are in sync")
    reorder(cluster_options, name, [0, 1])  # which copies nothing, and leaves the leader
    wait_for(lambda: _replicas(admin, name) == [0, 1], "the other one is preferred")
    assert leader() == 1
    tab.open(f"/topics/{name}")
    tab.see("not preferred")
    if place == "topic":
        tab.press("Preview", tab.unfold("Elect the preferred leaders"))
    else:
        tab.open("/elections")
        tab.press("Elect the preferred leaders")
    confirm(tab, "Elect them", "0")
    tab.see("the preferred replica leads" if place == "topic" else "has its leader")
    wait_for(lambda: leader() == 0, "the preferred replica leads")
    tab.open(f"/topics/{name}")
    tab.press("Preview", tab.unfold("Elect the preferred leaders"))
    tab.see("its preferred replica leads already")


def test_a_topic_is_moved_with_a_preview(tab: Tab, admin: AdminClient, make: Make) -> None:
    name = make("topic-moved", 3, replica_assignment=[[0], [0], [0]], replicas=-1, records=50)
    tab.open(f"/topics/{name}")
    part = tab.unfold("Move it to other brokers")
    with tab.page.expect_event("load"):
        part.get_by_role("link", name="Propose moves").click()
    part = tab.unfold("Spread topics over brokers")
    assert tab.field("Topics", part).input_value() == name
    part.get_by_label("Ignore racks", exact=False).check()
    part.get_by_label("Limit in bytes per second", exact=False).fill("50000000")
    tab.press("Preview", part)
    tab.see("Replicas now", "are copied")
    assert {tuple(each.replicas) for each in _partitions(admin, name)} == {(0,)}
    confirm(tab, "Move them", name)
    tab.see("its move has started")
    wait_for(
        lambda: {tuple(each.replicas) for each in _partitions(admin, name)} == {(0,), (1,), (2,)},
        "each broker has a partition",
    )
    tab.open("/reassign")
    tab.see("No partition is being moved")
    part = tab.unfold("Cancel moves")
    tab.press("Preview", part)
    tab.press("Cancel them")
    tab.see("There was nothing to do")
    tab.open(f"/reassign?topic={name}")
    part = tab.unfold("Remove limits")
    tab.press("Preview", part)
    confirm(tab, "Remove them", name)
    kind = ConfigResource.Type.TOPIC
    assert not config_of(admin, kind, name, "leader.replication.throttled.replicas")


def test_a_topic_is_forked(tab: Tab, admin: AdminClient, make: Make) -> None:
    controller = admin.list_topics(timeout=60).controller_id  # which must have all of it
    name = make("to-be-forked", 1, replica_assignment=[[controller]], replicas=-1, records=7)
    tab.open(f"/topics/{name}")
    part = tab.unfold("Fork it")
    tab.field("Name of the fork", part).fill("the-fork")
    tab.press("Preview", part)
    assert "the-fork" not in admin.list_topics(timeout=60).topics
    confirm(tab, "Fork it", "the-fork")
    tab.see("the-fork")
    wait_for(lambda: span(admin, "the-fork") == (0, 7), "the fork has the records")
    assert span(admin, name) == (0, 7)


def test_a_topic_is_deleted_once_its_name_is_typed(
    tab: Tab, admin: AdminClient, make: Make
) -> None:
    name = make("to-be-deleted", records=3)
    tab.open(f"/topics/{name}")
    tab.press("Preview", tab.unfold("Delete it"))
    tab.see("3 offsets")
    tab.field("Type the topic's name").fill("another")
    tab.expected = {400}
    tab.press("Delete it")
    tab.see("not the topic's")
    tab.expected = set()
    assert name in admin.list_topics(timeout=60).topics
    tab.open(f"/topics/{name}")
    tab.press("Preview", tab.unfold("Delete it"))
    tab.field("Type the topic's name").fill(name)
    tab.press("Delete it")
    tab.see("deleted")
    wait_for(lambda: name not in admin.list_topics(timeout=60).topics, "it is gone")


def test_a_replica_is_moved_to_another_disk(tab: Tab, site: ConsoleCluster, make: Make) -> None:
    name = make("disk-changed", 1, replica_assignment=[[0]], replicas=-1, records=5)
    before = site.directory_of(0, name)
    tab.open("/brokers/0")
    part = tab.unfold("Move a replica to another directory")
    tab.field("Topic", part).fill(name)
    tab.field("Partition", part).fill("0")
    directories = tab.field("Directory", part).locator("option").all_inner_texts()
    [other] = [each for each in directories if each != str(before)]
    tab.field("Directory", part).select_option(other)
    tab.press("Preview", part)
    confirm(tab, "Move it", str(before), other)
    tab.see("it goes there")
    wait_for(lambda: str(site.directory_of(0, name)) == other, "it is there")


# -- groups and transactions --------------------------------------------------------------------


@pytest.mark.parametrize("group", ["reset-here", contents.SCRIPT + "/reset"], ids=repr)
def test_offsets_are_reset_undone_and_deleted(
    tab: Tab, admin: AdminClient, make: Make, group: str
) -> None:
    name = make(f"read-by-groups-{len(group)}", records=10)
    contents.commit(admin, group, name, [0], 8)
    path = f"/groups/{quote(group, safe='')}"
    tab.open(path)
    part = tab.unfold("Reset offsets")
    tab.field("To (earliest, latest, 1500, 2026-01-31T12:00:00Z, -100)", part).fill("earliest")
    tab.press("Preview", part)
    tab.see("reads 8 offsets again")
    assert committed(admin, group) == {(name, 0): 8}
    confirm(tab, "Reset them", name)
    assert committed(admin, group) == {(name, 0): 0}
    tab.open(path)
    tab.press("Preview an undo")
    confirm(tab, "Undo it", "8")
    assert committed(admin, group) == {(name, 0): 8}
    tab.open(path)
    tab.press("Preview", tab.unfold("Delete it"))
    confirm(tab, "Delete it", "8")
    tab.see("deleted")
    listed = admin.list_consumer_groups().result(DEADLINE_S).valid
    assert group not in {each.group_id for each in listed}


@pytest.mark.parametrize("name", [contents.TRANSACTION, contents.SCRIPT], ids=repr)
def test_a_transaction_is_aborted(
    tab: Tab, admin: AdminClient, make: Make, cluster_options: dict[str, Any], name: str
) -> None:
    topic = make(f"written-in-transactions-{len(name)}")
    producer = Producer(
        {**cluster_options, "transactional.id": name, "transaction.timeout.ms": 600_000}
    )
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    failed: list[Any] = []
    producer.produce(topic, b"never seen", on_delivery=lambda error, _: failed.append(error))
    assert producer.flush(DEADLINE_S) == 0
    assert failed == [None]
    contents.produce(cluster_options, topic, [(None, b"after it", [])])
    assert span(admin, topic, isolation=IsolationLevel.READ_COMMITTED)[1] == 0
    tab.open("/transactions")
    tab.see(name, "Ongoing")
    with tab.page.expect_event("load"):
        tab.page.get_by_role("link", name=name).first.click()
    tab.press("Preview an abort")
    confirm(tab, "Abort it", topic)
    tab.see("aborted")
    assert span(admin, topic, isolation=IsolationLevel.READ_COMMITTED)[1] == 3
    tab.open(f"/topics/{topic}/records")
    tab.see("never seen", "aborted")
    producer.abort_transaction(DEADLINE_S)


# -- security -----------------------------------------------------------------------------------


@pytest.mark.parametrize("principal", ["User:carol", f"User:{contents.SCRIPT}"])
def test_a_rule_is_added_explained_and_removed(
    tab: Tab, admin: AdminClient, principal: str
) -> None:
    filter_ = AclBindingFilter(
        ResourceType.TOPIC, contents.ORDERS, ResourcePatternType.LITERAL, principal, "*",
        AclOperation.READ, AclPermissionType.ALLOW,
    )  # fmt: skip

    def rules() -> list[AclBinding]:
        return admin.describe_acls(filter_).result(DEADLINE_S)

    def preview(title: str) -> None:
        tab.open("/acls")
        part = tab.unfold(title)
        tab.field("Principal", part).fill(principal)
        tab.field("Operation", part).select_option("READ")
        tab.field("Resource", part).select_option("TOPIC")
        tab.field("Name", part).fill(contents.ORDERS)
        tab.press("Preview", part)

    preview("Add a rule")
    assert not rules()
    confirm(tab, "Add it", principal, contents.ORDERS)
    tab.see("added")
    wait_for(rules, "the rule is there")

    def explained() -> bool:
        asked = quote(principal, safe="")
        tab.open(f"/acls?principal={asked}&operation=READ&type=TOPIC&name={contents.ORDERS}")
        return "Yes" in tab.page.get_by_role("status").first.inner_text()

    wait_for(explained, "the console says why")
    tab.see(principal)
    preview("Remove a rule")
    confirm(tab, "Remove it", principal)
    tab.see("removed")
    wait_for(lambda: not rules(), "the rule is gone")


def test_a_user_is_added_and_removed(
    tab: Tab, site: ConsoleCluster, admin: AdminClient, browser: Any
) -> None:
    tab.open("/users")
    part = tab.unfold("Add a user")
    tab.field("Name", part).fill("dora")
    tab.field("Password", part).fill("dora's <password>")
    tab.field("Mechanism", part).select_option("SCRAM-SHA-512")
    tab.press("Set", part)
    tab.see("the password is set")
    other = Tab(browser, site.url())
    try:

        def enters() -> bool:
            other.expected = {403, 429}
            other.log_in("dora", "dora's <password>")
            other.take_complaints()
            return "Log out" in other.text("header")

        wait_for(enters, "dora logs in")
    finally:
        other.close()
    tab.open("/users")
    tab.see("dora")
    part = tab.unfold("Remove a user")
    tab.field("Name", part).fill("dora")
    tab.press("Preview", part)
    tab.press("Remove it")
    tab.see("removed")
    described = admin.describe_user_scram_credentials(["dora"])
    assert isinstance(described, dict)
    with pytest.raises(KafkaException, match="RESOURCE_NOT_FOUND"):
        described["dora"].result(DEADLINE_S)


@pytest.mark.parametrize("client", ["reports", contents.SCRIPT])
def test_a_quota_is_set_and_removed(tab: Tab, client: str) -> None:
    def change(limit: str) -> None:
        tab.open("/quotas")
        part = tab.unfold("Set or remove a quota")
        part.locator("#of-client-id").fill(client)
        tab.field("Quota", part).select_option("producer_byte_rate")
        tab.field("Limit (empty: remove it)", part).fill(limit)
        tab.press("Preview", part)
        confirm(tab, "Change it", client, limit or "none")
        tab.see("changed")

    def listed() -> str:
        tab.open("/quotas")
        return tab.text()

    change("1048576")
    wait_for(lambda: client in listed() and "1,048,576" in listed(), "the quota is there")
    change("")
    wait_for(lambda: client not in listed(), "the quota is gone")


# -- options and logs ---------------------------------------------------------------------------


def test_options_of_brokers_and_loggers_are_changed(tab: Tab, admin: AdminClient) -> None:
    def change(option: str, value: str) -> None:
        tab.open("/configs?type=broker&name=0&q=log.retention.ms")
        tab.field("Option").fill(option)
        tab.field("Value").fill(value)
        tab.press("Preview" if value else "Return to the default")
        tab.press("Change it")

    def value() -> str | None:
        return config_of(admin, ConfigResource.Type.BROKER, "0", "log.retention.ms")

    before = value()
    change("log.retention.ms", "1234567890")
    wait_for(lambda: value() == "1234567890", "the option is changed")
    change("log.retention.ms", "")
    wait_for(lambda: value() == before, "the option is as before")
    tab.open("/logs")
    tab.field("Logger").select_option("barnabas.console")
    tab.field("Level").select_option("DEBUG")
    tab.press("Preview")
    tab.press("Change it")
    tab.open("/configs?type=loggers&name=0&q=console")
    row = tab.page.locator("tbody tr", has_text="barnabas.console").first
    assert "DEBUG" in row.inner_text()
    tab.open("/logs")
    tab.field("Logger").select_option("barnabas.console")
    tab.press("Return to that of its parent")
    tab.press("Change it")


def _partitions(admin: AdminClient, name: str) -> list[Any]:
    return list(admin.list_topics(name, timeout=60).topics[name].partitions.values())


def _replicas(admin: AdminClient, name: str) -> list[int]:
    return list(_partitions(admin, name)[0].replicas)


def _in_sync(admin: AdminClient, name: str, count: int) -> bool:
    return len(_partitions(admin, name)[0].isrs) == count
