"""`--command-config FILE`: options of a command's clients, from a Java properties file.

    security.protocol=SASL_SSL
    sasl.mechanism=SCRAM-SHA-512
    sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
        username="ada" password="…";
    ssl.truststore.location=ca.pem

The file has options that all clients share. Every client of a command is created with
`client_options(arguments)`, so that it reaches the same cluster in the same way. The file is read
when it is first needed, and once: it may be a pipe.
"""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property

from barnabas.model.errors import ConfigError

BOOTSTRAP = "127.0.0.1:9092"
TIMEOUT = "request.timeout.ms"

_PUBLIC = ("ssl.truststore.certificates", "ssl.keystore.certificate.chain")
"""Options that Kafka hides, although certificates are no secrets."""


class CommandConfig:
    """A properties file with client options, or none."""

    def __init__(self, path: str | None) -> None:
        self.path = path or None
        self._spelled: dict[str, str] = {}

    @cached_property
    def options(self) -> Mapping[str, str]:
        """The options that all clients share, by their full names.

        Raise ConfigError, which names the file and the option that is wrong.
        """
        if self.path is None:
            return {}
        with self.named():
            text, mode = self._read()
            options = self._checked(text)
        if mode & (stat.S_IRGRP | stat.S_IROTH) and self._has_secret(options):
            self._warn(f"has a password, and others can read it; use: chmod 600 {self.path}")
        return options

    @contextmanager
    def named(self) -> Iterator[None]:
        """Prefix the errors of options with the name of the file."""
        try:
            yield
        except ConfigError as failure:
            if self.path is None:
                raise
            option, equals, rest = str(failure).partition("=")
            text = f"{self._spelled.get(option, option)}{equals}{rest}"
            raise ConfigError(f"--command-config {self.path}: {text}") from failure

    def _read(self) -> tuple[str, int]:
        """Return the text of the file, and who may read it."""
        assert self.path is not None
        try:
            with open(self.path, encoding="utf-8") as file:
                return file.read(), os.fstat(file.fileno()).st_mode
        except OSError as failure:
            raise ConfigError((failure.strerror or str(failure)).lower()) from failure
        except UnicodeDecodeError as failure:
            raise ConfigError("not UTF-8") from failure

    def _checked(self, text: str) -> dict[str, str]:
        # Only here: commands without a file start faster without all these options.
        from barnabas.config.clients.admin import AdminOptions
        from barnabas.config.clients.common import CommonOptions
        from barnabas.config.clients.consumer import ConsumerOptions
        from barnabas.config.clients.options import by_option, parse_client_options, spellings
        from barnabas.config.clients.producer import ProducerOptions
        from barnabas.config.properties import read_properties

        shared = spellings(CommonOptions)
        elsewhere = {
            name
            for section in (AdminOptions, ConsumerOptions, ProducerOptions)
            for name in spellings(section)
        }
        given: dict[str, str] = {}
        for name, value in read_properties(text).items():
            if name not in shared and name in elsewhere:
                self._warn(f"{name} has no effect: commands use only what all clients share")
            elif shared.get(name) == TIMEOUT:
                self._warn(f"{name} has no effect: --timeout decides")
            else:
                given[name] = value
                self._spelled[shared.get(name, name)] = name
        acting = {
            name
            for name in parse_client_options(CommonOptions, given).given
            if not CommonOptions.options[name].reserved
        }
        values = by_option(CommonOptions, given)
        return {name: value for name, value in values.items() if name in acting}

    def _has_secret(self, options: Mapping[str, str]) -> bool:
        from barnabas.config.clients.common import CommonOptions

        declared = CommonOptions.options
        return any(declared[name].sensitive for name in options if name not in _PUBLIC)

    def _warn(self, text: str) -> None:
        print(f"barnabas: {self.path}: {text}", file=sys.stderr)


def bootstrap_of(arguments: argparse.Namespace) -> str:
    """Return the brokers to connect to first: from the command line, the file, or elsewhere."""
    given: str | None = arguments.bootstrap
    return (
        given
        or arguments.command_config.options.get("bootstrap.servers")
        or os.environ.get("BARNABAS_BOOTSTRAP")
        or BOOTSTRAP
    )


def client_options(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the options of every client of a command, by Kafka's names, with the brokers."""
    options: Mapping[str, str] = arguments.command_config.options
    return {
        "client.id": "barnabas-cli",
        **options,
        "bootstrap.servers": bootstrap_of(arguments),
    }
