"""Windows over which quotas are measured."""

from __future__ import annotations

from barnabas.config.option import Section, option
from barnabas.config.reasons import JAVA, QUOTAS


class QuotasOptions(Section):
    """Windows over which quotas are measured."""

    quota_window_num: int = option(
        "quota.window.num",
        "int",
        default=11,
        at_least=1,
        reserved=QUOTAS,
        doc="Samples that a client quota looks back on.",
    )
    quota_window_size_seconds: int = option(
        "quota.window.size.seconds",
        "int",
        default=1,
        at_least=1,
        reserved=QUOTAS,
        doc="Length of one such sample.",
    )
    replication_quota_window_num: int = option(
        "replication.quota.window.num",
        "int",
        default=11,
        at_least=1,
        doc="Samples that a replication quota looks back on.",
    )
    replication_quota_window_size_seconds: int = option(
        "replication.quota.window.size.seconds",
        "int",
        default=1,
        at_least=1,
        doc="Length of one such sample.",
    )
    alter_log_dirs_replication_quota_window_num: int = option(
        "alter.log.dirs.replication.quota.window.num",
        "int",
        default=11,
        at_least=1,
        doc="Samples that the quota of moves between directories looks back on.",
    )
    alter_log_dirs_replication_quota_window_size_seconds: int = option(
        "alter.log.dirs.replication.quota.window.size.seconds",
        "int",
        default=1,
        at_least=1,
        doc="Length of one such sample.",
    )
    controller_quota_window_num: int = option(
        "controller.quota.window.num",
        "int",
        default=11,
        at_least=1,
        reserved=QUOTAS,
        doc="Samples that the quota of topic changes looks back on.",
    )
    controller_quota_window_size_seconds: int = option(
        "controller.quota.window.size.seconds",
        "int",
        default=1,
        at_least=1,
        reserved=QUOTAS,
        doc="Length of one such sample.",
    )
    client_quota_callback_class: str | None = option(
        "client.quota.callback.class",
        "class",
        default=None,
        reserved=JAVA,
        doc="Class that computes quotas.",
    )
