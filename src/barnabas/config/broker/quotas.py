"""Windows over which quotas are measured."""

from __future__ import annotations

from barnabas.config.option import Section, option, reserved


class QuotasOptions(Section):
    """Windows over which quotas are measured."""

    _client_quotas = reserved(
        """
        quota.window.num           int:1..  11  no  QUOTAS  Samples that a client quota looks back on.
        quota.window.size.seconds  int:1..  1   no  QUOTAS  Length of one such sample.
        """  # noqa: E501
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
    _controller_quotas = reserved(
        """
        controller.quota.window.num           int:1..  11  no  QUOTAS  Samples that the quota of topic changes looks back on.
        controller.quota.window.size.seconds  int:1..  1   no  QUOTAS  Length of one such sample.
        client.quota.callback.class           class    -   no  JAVA    Class that computes quotas.
        """  # noqa: E501
    )
