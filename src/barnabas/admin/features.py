"""Features of the cluster: the supported levels, and the finalized ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from barnabas import __version__
from barnabas.admin.controller import at_controller
from barnabas.admin.failures import check, failure_or_none
from barnabas.client.cluster_client import ANY, CONTROLLER, ClusterClient
from barnabas.client.connection import Connection
from barnabas.model.errors import RequestError
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

FIRST_VERSION_WITH_FEATURES = 3
FIRST_VERSION_WITH_TYPES = 1
"""Of UpdateFeatures: upgrades and two kinds of downgrades, and a trial run."""


class UpdateFeatureType(IntEnum):
    """How a feature's level may change; an unsafe downgrade may lose metadata."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True)
class LevelRange:
    """Levels from `lowest` to `highest`, both included."""

    lowest: int
    highest: int


@dataclass(frozen=True, slots=True)
class FeatureDescription:
    """Supported and finalized features; `finalized_epoch` grows with every change."""

    supported: Mapping[str, LevelRange]
    finalized: Mapping[str, LevelRange]
    finalized_epoch: int | None


@dataclass(frozen=True, slots=True)
class FeatureUpdate:
    """A new level for a feature; below 1 it is disabled."""

    level: int
    type: UpdateFeatureType = UpdateFeatureType.UPGRADE


async def describe_features(
    client: ClusterClient, *, at_controller: bool = False, timeout_ms: float | None = None
) -> FeatureDescription:
    """Return the features as a broker (or the controller) knows them."""

    async def attempt() -> ApiVersionsResponse:
        connection = await client.connection(CONTROLLER if at_controller else ANY)
        version = connection.version_of(ApiVersionsRequest, at_least=FIRST_VERSION_WITH_FEATURES)
        request = ApiVersionsRequest(
            client_software_name="barnabas", client_software_version=__version__
        )
        response: ApiVersionsResponse = await connection.send(request, version=version)
        check(response.error_code, "features")
        return response

    response = await client.retrying(attempt, timeout_ms=timeout_ms)
    epoch = response.finalized_features_epoch
    return FeatureDescription(
        {
            feature.name: LevelRange(feature.min_version, feature.max_version)
            for feature in response.supported_features
        },
        {
            feature.name: LevelRange(feature.min_version_level, feature.max_version_level)
            for feature in response.finalized_features
        },
        epoch if epoch >= 0 else None,
    )


async def update_features(
    client: ClusterClient,
    updates: Mapping[str, FeatureUpdate],
    *,
    validate_only: bool = False,
    timeout_ms: int = 60_000,
) -> dict[str, RequestError | None]:
    """Finalize other levels of features; raises if the request as a whole is rejected.

    await update_features(client, {"metadata.version": FeatureUpdate(21)})
    """

    async def ask(connection: Connection) -> UpdateFeaturesResponse:
        least = FIRST_VERSION_WITH_TYPES if validate_only else 0
        version = connection.version_of(UpdateFeaturesRequest, at_least=least)
        typed = version >= FIRST_VERSION_WITH_TYPES
        down = (UpdateFeatureType.SAFE_DOWNGRADE, UpdateFeatureType.UNSAFE_DOWNGRADE)
        request = UpdateFeaturesRequest(
            timeout_ms=timeout_ms,
            feature_updates=[
                FeatureUpdateKey(
                    feature=name,
                    max_version_level=update.level,
                    allow_downgrade=not typed and update.type in down,
                    upgrade_type=update.type if typed else UpdateFeatureType.UPGRADE,
                )
                for name, update in updates.items()
            ],
            validate_only=validate_only,
        )
        response: UpdateFeaturesResponse = await connection.send(request, version=version)
        check(response.error_code, "features", response.error_message)
        return response

    response = await at_controller(client, ask, timeout_ms=timeout_ms)
    # From version 2 on there is one result for all features.
    return dict.fromkeys(updates) | {
        result.feature: failure_or_none(result.error_code, result.feature, result.error_message)
        for result in response.results
    }
