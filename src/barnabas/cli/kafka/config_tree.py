"""`kafka-configs --zookeeper`: what works in the tree, also before the first broker has started."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from barnabas.cli.kafka.config_entity import (
    BROKERS,
    USERS,
    Changes,
    Entity,
    InvalidConfig,
    check_removed,
)
from barnabas.cli.kafka.config_quotas import MECHANISMS, credential_of
from barnabas.cli.kafka.flags import Given
from barnabas.cli.kafka.tree import on_tree, properties_of

if TYPE_CHECKING:
    from barnabas.coordination.contract import Coordination

DEFAULT = "<default>"


def run(given: Given, entities: list[Entity], changes: Changes | None) -> bool:
    """Return False if this is about something that only brokers do."""
    if [entity.type for entity in entities] not in ([USERS], [BROKERS]):
        return False
    [entity] = entities
    if changes is not None and entity.type == USERS:
        names = [*changes.added, *changes.removed]
        if any(name not in MECHANISMS for name in names) or not entity.name:
            return False  # quotas

    async def work(tree: Coordination) -> None:
        if changes is None:
            await _describe(tree, entity)
        else:
            await _alter(tree, entity, changes)

    on_tree(given["zookeeper"], work, properties_of(given["zk-tls-config-file"]))
    return True


async def _describe(tree: Coordination, entity: Entity) -> None:
    from barnabas.metadata.config_store import ConfigStore

    store = ConfigStore(tree)
    name = entity.name
    if name is None:
        found = await store.get_all(entity.type)
    else:
        found = {name or DEFAULT: await store.get(entity.type, name or DEFAULT)}
    for each, configs in sorted(found.items()):
        if configs or name is not None:
            text = ",".join(f"{key}={value}" for key, value in configs.items())
            print(f"Configs for {_shown(entity.type, each)} are {text}")


async def _alter(tree: Coordination, entity: Entity, changes: Changes) -> None:
    from barnabas.metadata.config_store import ConfigStore
    from barnabas.security.sasl.scram_credentials import (
        MECHANISMS as CREDENTIALS,
    )
    from barnabas.security.sasl.scram_credentials import SALT_BYTES, ScramCredential

    name = entity.name or DEFAULT
    if entity.type == BROKERS:
        await _check_stopped(tree, entity)
    added = dict(changes.added)
    if entity.type == USERS:
        for mechanism, text in changes.added.items():
            iterations, password = credential_of(mechanism, text)
            added[mechanism] = ScramCredential.of_password(
                CREDENTIALS[mechanism], password, os.urandom(SALT_BYTES), iterations
            ).encode()

    def changed(configs: dict[str, str]) -> dict[str, str]:
        check_removed(changes, configs)
        left = {key: value for key, value in configs.items() if key not in changes.removed}
        return left | added

    await ConfigStore(tree).update(entity.type, name, changed)
    print(f"Completed updating config for entity: {_shown(entity.type, name)}.")


async def _check_stopped(tree: Coordination, entity: Entity) -> None:
    from barnabas.coordination.contract import NoNode
    from barnabas.metadata.tree_schema import BROKER_IDS

    try:
        running = await tree.children(BROKER_IDS)
    except NoNode:
        running = []
    if entity.name and entity.name in running:
        who = f" - broker {entity.name} is running. "
    elif not entity.name and running:
        who = f" - {len(running)} brokers are running. "
    else:
        return
    raise InvalidConfig(
        "--bootstrap-server option must be specified to update brokers configs. Broker "
        "configuration operations using ZooKeeper are only supported if the affected broker(s) are "
        f"not running.{who.rstrip()}"
    )


def _shown(kind: str, name: str) -> str:
    what = {USERS: "user-principal", BROKERS: "brokers"}[kind]
    return f"default {what}" if name == DEFAULT else f"{what} '{name}'"
