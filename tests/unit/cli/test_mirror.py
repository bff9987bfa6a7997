"""`barnabas mirror`: arguments that cannot be right; copying itself is in tests/system."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Barnabas, Produce

NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--target", NOWHERE, "--topics", "a"), "set --source HOST:PORT"),
        (("--source", NOWHERE, "--topics", "a"), "set --target HOST:PORT"),
        (("--source", NOWHERE, "--target", NOWHERE), "--topics must have at least one pattern"),
        (
            ("--source", NOWHERE, "--target", NOWHERE, "--topics", "("),
            "'(' is not a regular expression",
        ),
        (("--consumer.config", "none", "--topics", "a"), "--consumer.config none: No such file"),
        (
            ("--engine", "local", "--master", "local[2]"),
            "--engine local: --master and --conf are for --engine spark",
        ),
        (("offsets", "--target", NOWHERE, "--topics", "a"), "set --source HOST:PORT"),
    ],
)
def test_bad_input_is_named(barnabas: Barnabas, words: tuple[str, ...], complaint: str) -> None:
    done = barnabas("mirror", *words)
    assert done.code == 1
    assert complaint in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--name", "a b"), "--name: 'a b' is not a name"),
        (("--commit-interval", "0"), "--commit-interval: '0' is not a positive number"),
        (("--engine", "steam"), "--engine: invalid choice: 'steam'"),
        (("--master", "steam"), "--master: 'steam' is not a Spark master: local[N]"),
        (("--master", "spark://head"), "'spark://head' is not a Spark master"),
        (("--conf", "spark.cores.max"), "'spark.cores.max' is not a Spark option: NAME=VALUE"),
    ],
)
def test_misuse(barnabas: Barnabas, words: tuple[str, ...], complaint: str) -> None:
    done = barnabas("mirror", *words)
    assert done.code == 2
    assert complaint in done.err


def test_an_unknown_option_in_a_file_is_named(barnabas: Barnabas, tmp_path: Path) -> None:
    path = tmp_path / "source.properties"
    path.write_text(f"bootstrap.servers={NOWHERE}\nfetch.mim.bytes=1\n")
    done = barnabas("mirror", "--consumer.config", str(path), "--target", NOWHERE, "--topics", "a")
    assert done.code == 1
    assert "fetch.mim.bytes: no such option" in done.err


@pytest.mark.parametrize("engine", ["local", "spark"])
@pytest.mark.parametrize("side", ["--source", "--target"])
def test_a_cluster_that_does_not_answer_is_named(
    barnabas: Barnabas, barnabas_bootstrap: str, engine: str, side: str
) -> None:
    pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")
    sides = {"--source": barnabas_bootstrap, "--target": barnabas_bootstrap, side: NOWHERE}
    words = [word for pair in sides.items() for word in pair]
    done = barnabas("mirror", *words, "--topics", "a", "--engine", engine)
    assert done.code == 1
    assert f"barnabas mirror: {side} {NOWHERE}: no broker responds (" in done.err
    assert "is a broker running there?" in done.err
    assert len(done.err.splitlines()) == 1


def test_a_master_that_is_not_there_is_named(barnabas: Barnabas, barnabas_bootstrap: str) -> None:
    pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")
    words = ["--source", barnabas_bootstrap, "--target", barnabas_bootstrap, "--topics", "a"]
    done = barnabas("mirror", *words, "--prefix", "b.", "--master", f"spark://{NOWHERE}")
    assert done.code == 1
    assert done.err.startswith(f"barnabas mirror: --master spark://{NOWHERE}: no Spark master")
    assert len(done.err.splitlines()) == 1


def test_one_cluster_needs_a_prefix(
    barnabas: Barnabas, barnabas_bootstrap: str, topic: str, produce: Produce
) -> None:
    assert produce(topic, "a\nb\n").code == 0
    words = ["mirror", "--source", barnabas_bootstrap, "--target", barnabas_bootstrap]
    words += ["--topics", f".*{topic}", "--name", topic, "--until-caught-up"]
    refused = barnabas(*words)
    assert refused.code == 1
    assert "needs --prefix" in refused.err
    for expected in (2, 0, 0):  # copies are not copied again
        done = barnabas(*words, "--prefix", "old.", "--json")
        assert done.code == 0, done.err
        assert json.loads(done.out.splitlines()[-1])["records"] == expected
    copied = barnabas("consume", f"old.{topic}", "--exit-at-end", "--isolation", "committed")
    assert sorted(copied.out.split()) == ["a", "b"]
