"""Other credentials for a client that is running."""

from __future__ import annotations

import random

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.security import login_of
from barnabas.compat.confluent_kafka.failures import exception_of
from barnabas.config.clients.common import CommonOptions
from barnabas.model.errors import ConfigError


def use_password(
    client: ClusterClient, options: CommonOptions, username: str, password: str
) -> None:
    """Log in with these from the next connection on."""
    if not isinstance(username, str) or not isinstance(password, str):
        raise TypeError("username and password must be str")
    changed = {"sasl.plain.username": username, "sasl.plain.password": password}
    try:
        login = login_of(options.with_overrides(changed), random.random)
    except ConfigError as failure:
        raise exception_of(failure) from failure
    client.use_login(login)
