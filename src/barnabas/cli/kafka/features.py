"""`kafka-features`: features of a cluster, and the levels that are finalized."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.cli.kafka.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Flags, Given, UsageError
from barnabas.cli.session import run as run_session
from barnabas.model.errors import BarnabasError, InvalidValueError

if TYPE_CHECKING:
    from barnabas.admin.features import FeatureUpdate
    from barnabas.client.cluster_client import ClusterClient

FAILURE = ""

ACTIONS = ("describe", "upgrade", "downgrade", "disable")
METADATA = "metadata.version"
RELEASES = """\
3.0-IV1 3.1-IV0 3.2-IV0 3.3-IV0 3.3-IV1 3.3-IV2 3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2
3.6-IV0 3.6-IV1 3.6-IV2 3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0 3.9-IV0
4.0-IV0 4.0-IV1 4.0-IV2 4.0-IV3 4.1-IV0 4.1-IV1
"""
LEVELS = dict(enumerate(RELEASES.split(), 1))
"""The releases behind the levels of metadata.version."""

FLAGS = Flags(
    "describe shows features; upgrade, downgrade and disable change the levels of a KRaft cluster.",
    (
        BOOTSTRAP,
        Flag("--bootstrap-controller", "HOST:PORT[,...]", "as --bootstrap-server"),
        COMMAND_CONFIG,
        Flag("--metadata", "RELEASE", "the level of metadata.version, as in 3.3-IV3"),
        Flag("--release-version", "RELEASE", "as --metadata"),
        Flag("--feature", "NAME=LEVEL", "a feature; to disable it, its name", many=True),
        Flag("--unsafe", help="even if metadata is lost"),
        Flag("--dry-run", help="only check"),
    ),
    words="ACTION",
    excludes={
        "bootstrap-server": ("bootstrap-controller",),
        "metadata": ("release-version",),
    },
)


class SomeFailed(BarnabasError):
    """Features whose level could not be changed."""


def run(given: Given) -> None:
    """Do what is asked for."""
    if len(given.words) != 1 or given.words[0] not in ACTIONS:
        chosen = " ".join(given.words)
        reason = f"invalid choice: {chosen!r}" if chosen else "too few arguments"
        raise UsageError(f"{reason} (choose from {', '.join(ACTIONS)})")
    [action] = given.words
    updates = {} if action == "describe" else updates_of(given, action)
    connection = given.connection()
    connection.bootstrap = connection.bootstrap or given["bootstrap-controller"]
    if not connection.bootstrap:
        raise UsageError(
            "one of the arguments --bootstrap-server --bootstrap-controller is required"
        )

    async def work(client: ClusterClient) -> None:
        if action == "describe":
            await _describe(client)
        else:
            await _update(client, action, updates, dry_run="dry-run" in given)

    run_session(connection, work)


def level_text(feature: str, level: int) -> str:
    """Return a level; of the metadata, its release."""
    return LEVELS.get(level, f"UNKNOWN [{level}]") if feature == METADATA else str(level)


async def _describe(client: ClusterClient) -> None:
    from barnabas.admin.features import describe_features

    found = await describe_features(client)
    epoch = "-" if found.finalized_epoch is None else str(found.finalized_epoch)
    for name, span in sorted(found.supported.items()):
        final = found.finalized.get(name)
        print(
            f"Feature: {name}\tSupportedMinVersion: {level_text(name, span.lowest)}"
            f"\tSupportedMaxVersion: {level_text(name, span.highest)}"
            f"\tFinalizedVersionLevel: {level_text(name, final.highest if final else 0)}"
            f"\tEpoch: {epoch}"
        )


def updates_of(given: Given, action: str) -> dict[str, FeatureUpdate]:
    """Return the new levels of features."""
    from barnabas.admin.features import FeatureUpdate, UpdateFeatureType

    kind = UpdateFeatureType.UPGRADE
    if action != "upgrade":
        kind = UpdateFeatureType.SAFE_DOWNGRADE
        if "unsafe" in given:
            kind = UpdateFeatureType.UNSAFE_DOWNGRADE
    levels: list[tuple[str, int]] = []
    release = given["metadata"] or given["release-version"]
    if release is not None:
        levels.append((METADATA, _metadata_level(release)))
    levels += [(text, 0) if action == "disable" else _level(text) for text in given["feature"]]
    updates: dict[str, FeatureUpdate] = {}
    for name, level in levels:
        if name in updates:
            raise InvalidValueError(f"Feature {name} was specified more than once.")
        updates[name] = FeatureUpdate(level, kind)
    if not updates:
        raise InvalidValueError(f"You must specify at least one feature to {action}")
    return updates


def _level(text: str) -> tuple[str, int]:
    name, equals, level = text.partition("=")
    if not equals:
        raise InvalidValueError(f"Can't parse feature=level string {text}: equals sign not found.")
    try:
        return name.strip(), int(level)
    except ValueError:
        raise InvalidValueError(
            f"Can't parse feature=level string {text}: unable to parse {level} as a short."
        ) from None


def _metadata_level(release: str) -> int:
    for level, name in reversed(LEVELS.items()):
        if name == release or name.startswith(f"{release}-IV"):
            return level
    raise InvalidValueError(
        f"Unsupported metadata.version {release}. Supported metadata.version are "
        f"{', '.join(LEVELS.values())}"
    )


async def _update(
    client: ClusterClient, action: str, updates: dict[str, FeatureUpdate], *, dry_run: bool
) -> None:
    from barnabas.admin.features import update_features

    failed = 0
    outcomes = await update_features(client, updates, validate_only=dry_run)
    for name, error in sorted(outcomes.items()):
        level = updates[name].level
        if error is not None:
            failed += 1
            verb = "Can not" if dry_run else "Could not"
            what = f"{action} {name} to {level_text(name, level)}" if level else f"disable {name}"
            print(f"{verb} {what}. {error}")
        else:
            verb = "can be" if dry_run else "was"
            done = f"{action}d to {level_text(name, level)}." if level else "disabled."
            print(f"{name} {verb} {done}")
    if failed:
        raise SomeFailed(f"{failed} out of {len(outcomes)} operation(s) failed.")
