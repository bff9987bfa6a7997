"""The reference page of options: it lists all of them, is fresh, and tells the truth about them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from barnabas.config.broker import BrokerOptions
from barnabas.config.option import Section, option
from barnabas.config.topic import TopicOptions

ROOT = Path(__file__).parents[3]


@pytest.fixture
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "option_reference", ROOT / "tools" / "option_reference.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_page_is_fresh(tool: ModuleType) -> None:
    assert tool.PAGE.read_text() == tool.page(), "run python tools/option_reference.py"
    assert tool.CLIENT_PAGE.read_text() == tool.client_page(), (
        "run python tools/option_reference.py"
    )


def test_every_option_has_its_line(tool: ModuleType) -> None:
    lines = [line.split(" | ")[0] for line in tool.page().splitlines() if line.startswith("| `")]
    names = [*BrokerOptions.options, *TopicOptions.options]
    assert lines == [f"| `{name}`" for name in names]


def test_every_option_of_clients_has_its_line_in_its_part(tool: ModuleType) -> None:
    lines = [line.split(" | ")[0] for line in tool.client_page().splitlines()]
    for section in tool.CLIENT_SECTIONS.values():
        for name in section.options:
            assert f"| `{name}`" in lines


def test_a_stale_page_is_noticed_and_written_anew(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "PAGE", tmp_path / "reference" / "options.md")
    monkeypatch.setattr(tool, "CLIENT_PAGE", tmp_path / "reference" / "client-options.md")
    monkeypatch.setattr("sys.argv", ["option_reference.py", "--check"])
    assert tool.main() == 1
    monkeypatch.setattr("sys.argv", ["option_reference.py"])
    assert tool.main() == 0
    monkeypatch.setattr("sys.argv", ["option_reference.py", "--check"])
    assert tool.main() == 0
    tool.PAGE.write_text(tool.PAGE.read_text() + "more")
    assert tool.main() == 1


def test_what_is_declared_to_act_is_read_and_what_is_not_is_not(tool: ModuleType) -> None:
    assert tool.wrong_statuses() == []


def test_a_status_that_contradicts_the_sources_is_noticed(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Sample(Section):
        unread_one: int = option("unread.one", "int", default=1, doc="Acts, it says.")
        read_one: int = option("read.one", "int", default=1, reserved="arrives later", doc="Not.")
        right_one: int = option("right.one", "int", default=1, doc="Acts.")

    class Nothing(Section):
        pass

    (tmp_path / "module.py").write_text("print(broker.options.read_one, self.options.right_one)")
    monkeypatch.setattr(tool, "SOURCES", tmp_path)
    monkeypatch.setattr(tool, "BrokerOptions", Sample)
    monkeypatch.setattr(tool, "TopicOptions", Nothing)
    monkeypatch.setattr(tool, "CLIENT_SECTIONS", {})
    assert tool.wrong_statuses() == [
        "unread.one is declared to act, but nothing reads it",
        "read.one is declared to have no effect, but something reads it",
    ]
