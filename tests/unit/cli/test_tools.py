from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.unit.cli.conftest import Barnabas

from barnabas.cli.kafka.tools import TOOLS


def test_launchers_run_the_tools(command: Barnabas, tmp_path: Path) -> None:
    done = command("tools", "install", str(tmp_path / "bin"))
    assert done.code == 0
    assert done.out.splitlines() == [
        f"wrote {2 * len(TOOLS)} launchers of {len(TOOLS)} tools to {tmp_path}/bin",
        f"add it to PATH: export PATH={tmp_path}/bin:$PATH",
    ]
    names = {path.name for path in (tmp_path / "bin").iterdir()}
    assert names == {f"{tool.name}{end}" for tool in TOOLS for end in ("", ".sh")}
    ran = subprocess.run(
        [tmp_path / "bin" / "kafka-topics.sh", "--lits", "a b"],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))),
    )
    assert ran.returncode == 1
    assert ran.stderr.startswith("lits is not a recognized option; did you mean --list?")


def test_launchers_are_written_again(command: Barnabas, tmp_path: Path) -> None:
    assert command("tools", "install", str(tmp_path)).code == 0
    assert command("tools", "install", str(tmp_path)).code == 0


def test_other_files_are_kept(command: Barnabas, tmp_path: Path) -> None:
    foreign = tmp_path / "kafka-topics.sh"
    foreign.write_text("#!/bin/sh\n")
    done = command("tools", "install", str(tmp_path))
    assert done.code == 1
    assert done.err == (
        f"barnabas tools: {foreign}: not written by barnabas tools install; --force replaces them\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["kafka-topics.sh"]
    assert command("tools", "install", str(tmp_path), "--force").code == 0
    assert "barnabas.cli kafka-topics" in foreign.read_text()


def test_a_link_is_replaced_and_not_its_target(command: Barnabas, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kafka-topics.sh").symlink_to(target)
    assert command("tools", "install", str(tmp_path / "bin"), "--force").code == 0
    assert target.read_text() == "mine\n"


def test_the_list_has_all_names(command: Barnabas) -> None:
    assert command("tools", "list").out.split() == [tool.name for tool in TOOLS]
    assert json.loads(command("tools", "list", "--json").out) == [tool.name for tool in TOOLS]
