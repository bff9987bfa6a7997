"""Windows over which quotas are measured."""

from __future__ import annotations

from barnabas.config.option import Section, option, reserved


class QuotasOptions(Section):
    """Windows over which quotas are measured."""

    quota_window_num: int = option(
        "quota.window.num",
        "int",
        default=11,
        at_least=1,
        doc="Number of samples kept for client quotas and connection rates.",
    )
    quota_window_size_seconds: int = option(
        "quota.window.size.seconds",
        "int",
        default=1,
        at_least=1,
        doc="Length of one sample.",
    )
    replication_quota_window_num: int = option(
        "replication.quota.window.num",
        "int",
        default=11,
        at_least=1,
        doc="Number of samples kept for replication quotas.",
    )
    replication_quota_window_size_seconds: int = option(
        "replication.quota.window.size.seconds",
        "int",
        default=1,
        at_least=1,
        doc="Length of one sample.",
    )
    alter_log_dirs_replication_quota_window_num: int = option(
        "alter.log.dirs.replication.quota.window.num",
        "int",
        default=11,
        at_least=1,
        doc="Number of samples kept for the log directory move quota.",
    )
    alter_log_dirs_replication_quota_window_size_seconds: int = option(
        "alter.log.dirs.replication.quota.window.size.seconds",
        "int",
        default=1,
        at_least=1,
        doc="Length of one sample.",
    )
    controller_quota_window_num: int = option(
        "controller.quota.window.num",
        "int",
        default=11,
        at_least=1,
        doc="Number of samples kept for the controller mutation quota.",
    )
    controller_quota_window_size_seconds: int = option(
        "controller.quota.window.size.seconds",
        "int",
        default=1,
        at_least=1,
        doc="Length of one sample.",
    )
    _quota_callback = reserved(
        """
        client.quota.callback.class  class  -  no  JAVA  Class that computes quotas.
        """
    )
