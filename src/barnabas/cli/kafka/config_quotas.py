"""`kafka-configs` for users, clients and addresses: their quotas, and users' SCRAM credentials."""

from __future__ import annotations

import re

from barnabas.admin.quotas import (
    CLIENT_ID,
    IP,
    USER,
    ClientQuota,
    QuotaAlteration,
    QuotaFilter,
    QuotaMatch,
    alter_client_quotas,
    describe_client_quotas,
)
from barnabas.admin.scram import (
    DEFAULT_ITERATIONS,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
    alter_user_scram_credentials,
    describe_user_scram_credentials,
)
from barnabas.cli.kafka.config_entity import (
    CLIENTS,
    IPS,
    USERS,
    Changes,
    Entity,
    InvalidConfig,
    check_removed,
)
from barnabas.cli.kafka.java_text import double_text
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.quotas.quota_keys import CLIENT_KEYS, IP_KEYS

KINDS = {USERS: USER, CLIENTS: CLIENT_ID, IPS: IP}
SHOWN = {USER: "user-principal", CLIENT_ID: "client-id", IP: "ip"}
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
ITERATIONS_MIN = 4096


async def describe(client: ClusterClient, entities: list[Entity], *, everything: bool) -> None:
    """Print quotas, and SCRAM credentials of users."""
    for quota in await _quotas(client, entities):
        values = ", ".join(
            f"{key}={double_text(value)}" for key, value in sorted(quota.values.items())
        )
        print(f"Quota configs for {_entity_text(quota)} are {values}")
    if entities[0].type == IPS or any(e.type == CLIENTS or e.name == "" for e in entities):
        return
    names = [entity.name for entity in entities if entity.name]
    credentials = await describe_user_scram_credentials(client, names or None)
    for user, found in credentials.items():
        if isinstance(found, RequestError):
            if found.code is not ErrorCode.RESOURCE_NOT_FOUND:  # that is: the user has none
                print(
                    "Error retrieving SCRAM credential configs for user-principal "
                    f"'{user}': {found}"
                )
            continue
        text = ", ".join(f"{_name(each.mechanism)}=iterations={each.iterations}" for each in found)
        print(f"SCRAM credential configs for user-principal '{user}' are {text}")


def _entity_text(quota: ClientQuota) -> str:
    return ", ".join(
        f"the default {SHOWN[kind]}" if name is None else f"{SHOWN[kind]} '{name}'"
        for kind in (USER, CLIENT_ID, IP)
        if kind in quota.entity
        for name in [quota.entity[kind]]
    )


def _name(mechanism: ScramMechanism) -> str:
    return mechanism.name.replace("_", "-")


async def _quotas(client: ClusterClient, entities: list[Entity]) -> list[ClientQuota]:
    filters = [
        QuotaFilter(KINDS[entity.type])
        if entity.name is None
        else QuotaFilter(
            KINDS[entity.type],
            QuotaMatch.EXACT if entity.name else QuotaMatch.DEFAULT,
            entity.name or None,
        )
        for entity in entities
    ]
    return await describe_client_quotas(client, filters, strict=True)


async def alter(client: ClusterClient, entities: list[Entity], changes: Changes) -> None:
    """Set and reset quotas, or SCRAM credentials."""
    types = [entity.type for entity in entities]
    keys: tuple[str, ...] = IP_KEYS if types == [IPS] else CLIENT_KEYS
    if types == [IPS]:
        unknown = [key for key in (*changes.added, *changes.removed) if key not in keys]
        if unknown:
            raise InvalidConfig(
                "Only connection quota configs can be added for 'ips' using --bootstrap-server. "
                f"Unexpected config names: {','.join(unknown)}"
            )
    else:
        _check_names(types, changes, "added", list(changes.added))
        _check_names(types, changes, "deleted", changes.removed)
        if any(key in MECHANISMS for key in (*changes.added, *changes.removed)):
            await _alter_credentials(client, entities, changes)
            return
    if any(entity.name is None for entity in entities):
        raise InvalidConfig("An entity name must be specified for every entity type")
    present = await _quotas(client, entities)
    check_removed(changes, {key for quota in present for key in quota.values})
    values: dict[str, float | None] = dict.fromkeys(changes.removed, None)
    for key, text in changes.added.items():
        try:
            values[key] = float(text)
        except ValueError:
            raise InvalidConfig(
                f"Cannot parse quota configuration value for {key}: {text}"
            ) from None
    entity = {KINDS[each.type]: each.name or None for each in entities}
    [outcome] = await alter_client_quotas(client, [QuotaAlteration(entity, values)])
    if outcome.error is not None:
        raise outcome.error


def _check_names(types: list[str], changes: Changes, done: str, names: list[str]) -> None:
    both = types == [USERS]
    kinds = "quota and SCRAM credential" if both else "quota"
    known = (*CLIENT_KEYS, *MECHANISMS) if both else CLIENT_KEYS
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InvalidConfig(
            f"Only {kinds} configs can be {done} for '{USERS if both else CLIENTS}' using "
            f"--bootstrap-server. Unexpected config names: {', '.join(unknown)}"
        )


async def _alter_credentials(
    client: ClusterClient, entities: list[Entity], changes: Changes
) -> None:
    [entity] = entities
    if not entity.name:
        raise InvalidConfig(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM "
            "Credentials using --bootstrap-server."
        )
    if any(key in CLIENT_KEYS for key in (*changes.added, *changes.removed)):
        raise InvalidConfig(
            "Cannot alter both quota and SCRAM credential configs simultaneously for 'users' using "
            "--bootstrap-server."
        )
    outcomes = await alter_user_scram_credentials(
        client,
        [
            *(UserScramCredentialDeletion(entity.name, each) for each in changes.removed),
            *(
                UserScramCredentialUpsertion(entity.name, mechanism, password, iterations)
                for mechanism, text in changes.added.items()
                for iterations, password in [credential_of(mechanism, text)]
            ),
        ],
    )
    for error in outcomes.values():
        if error is not None:
            raise error


def credential_of(mechanism: str, text: str) -> tuple[int, str]:
    """Parse `iterations=8192,password=secret`: the iterations and the password."""
    found = re.fullmatch(r"(?:iterations=(-?[0-9]*),)?password=(.*)", text)
    if found is None:
        raise InvalidConfig(f"Invalid credential property {mechanism}={text}")
    iterations = DEFAULT_ITERATIONS if found[1] in (None, "", "-1") else int(found[1])
    if iterations < ITERATIONS_MIN:
        raise InvalidConfig(
            f"Iterations {iterations} is less than the minimum {ITERATIONS_MIN} required for "
            f"{mechanism}"
        )
    return iterations, found[2]
