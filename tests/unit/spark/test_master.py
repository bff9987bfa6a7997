"""Masters of Spark that are not there, told before Spark starts."""

from __future__ import annotations

import socket

import pytest

from barnabas.model.errors import ConfigError
from barnabas.spark.master import check_master


@pytest.mark.parametrize("master", ["local[2]", "local", "yarn", "k8s://https://nowhere:1"])
def test_what_is_no_standalone_master_is_left_to_spark(master: str) -> None:
    check_master(master)


def test_one_that_listens_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        check_master(f"spark://127.0.0.1:{port}")
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")


def test_where_nobody_listens_is_told_with_the_option() -> None:
    with pytest.raises(ConfigError) as failure:
        check_master("spark://127.0.0.1:1,localhost:1")
    said = str(failure.value)
    assert said.startswith("--master spark://127.0.0.1:1,localhost:1: no master of Spark listens")
    assert "127.0.0.1:1: Connection refused; localhost:1: Connection refused" in said


@pytest.mark.parametrize("address", ["head", "head:", ":7077", "head:port", "a:1,"])
def test_an_address_that_is_none_is_named(address: str) -> None:
    with pytest.raises(ConfigError, match=r"must be HOST:PORT|no master of Spark listens"):
        check_master(f"spark://{address}")


def test_a_port_that_no_machine_has_is_told() -> None:
    with pytest.raises(ConfigError, match="no master of Spark listens there"):
        check_master("spark://127.0.0.1:99999")
