"""What `barnabas` and `barnabas.aio` export: the names of kafka-python and aiokafka, lazily."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import barnabas
import barnabas.aio
import barnabas.serialization


@pytest.mark.parametrize("package", [barnabas, barnabas.aio, barnabas.serialization])
def test_every_exported_name_is_there(package: ModuleType) -> None:
    for name in package.__all__:
        assert getattr(package, name) is not None
        assert name in dir(package)


@pytest.mark.parametrize("package", [barnabas, barnabas.aio])
def test_the_stub_names_the_same(package: ModuleType) -> None:
    assert package.__file__ is not None
    typed: dict[str, list[str]] = {}
    stub = Path(package.__file__).with_suffix(".pyi").read_text()
    exec(stub[stub.index("__all__") :], typed)
    assert sorted(typed["__all__"]) == sorted(package.__all__)


@pytest.mark.parametrize("package", [barnabas, barnabas.aio])
def test_another_name_is_an_attribute_error(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'KafkaNonsense'"):
        package.KafkaNonsense  # noqa: B018


def test_the_package_alone_loads_no_client() -> None:
    program = "import sys, barnabas; print(sum(n.startswith('barnabas') for n in sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout == "1\n"
