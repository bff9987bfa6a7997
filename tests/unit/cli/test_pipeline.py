"""`barnabas pipeline`: what it writes, and what it says of projects that are wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.cli.main import main
from barnabas.cli.pipeline_view import behind, cells, plain, table
from barnabas.pipeline.progress import FlowReport

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def pipeline(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> tuple[int, str, str]:
        code = main(["pipeline", *words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_init_writes_a_project_and_says_what_comes_next(pipeline: Run, tmp_path: Path) -> None:
    shop = str(tmp_path / "shop")
    code, out, _ = pipeline("init", shop, "--bootstrap", "b:1", "--language", "sql")
    assert code == 0
    assert f"wrote {shop}/transformations/clicks.sql" in out
    assert "barnabas topics create clicks-dead-letters --bootstrap b:1" in out
    code, _, err = pipeline("init", shop)
    assert code == 1
    assert "spark-pipeline.yml: exists" in err


def test_init_names_the_file_with_client_options(pipeline: Run, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=b:1\nsecurity.protocol=SSL\n")
    code, out, err = pipeline("init", str(tmp_path / "shop"), "--command-config", str(file))
    assert (code, err) == (0, "")
    assert f"barnabas topics create clicks --bootstrap b:1 --command-config {file}\n" in out
    definitions = (tmp_path / "shop" / "transformations" / "clicks.py").read_text()
    assert f'CLIENT = read_properties(Path("{file}")' in definitions
    assert 'SERVERS["kafka.bootstrap.servers"] = "b:1"' in definitions


def test_a_project_that_is_wrong_is_told_line_by_line(
    pipeline: Run, tmp_path: Path, barnabas_bootstrap: str
) -> None:
    pytest.importorskip("grpc", reason="pip install 'barnabas[spark]'")
    shop = tmp_path / "shop"
    pipeline("init", str(shop), "--bootstrap", barnabas_bootstrap)
    path = shop / "transformations" / "clicks.py"
    path.write_text(path.read_text().replace("subscribe=", "subscribed="))
    for action in (("check", "--without-spark"), ("run",)):
        code, out, err = pipeline(*action, str(shop))
        assert (code, out) == (1, "")
        assert err.count("subscribed: no such option; did you mean subscribe?") == 3
        assert all(
            line.startswith("barnabas pipeline: transformations/clicks.py:")
            for line in err.splitlines()
        )


def test_a_folder_without_a_project_is_told(pipeline: Run, tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="pip install 'barnabas[spark]'")
    code, _, err = pipeline("check", str(tmp_path))
    assert code == 1
    assert err.startswith(f"barnabas pipeline: {tmp_path}: has no spark-pipeline.yml")


def test_a_master_that_is_not_there_is_named(
    pipeline: Run, tmp_path: Path, barnabas_bootstrap: str
) -> None:
    pytest.importorskip("grpc", reason="pip install 'barnabas[spark]'")
    shop = str(tmp_path / "shop")
    pipeline("init", shop, "--bootstrap", barnabas_bootstrap)
    for topic in ("clicks", "page-counts", "clicks-dead-letters"):
        main(["topics", "create", topic, "--bootstrap", barnabas_bootstrap])
    nowhere = "spark://127.0.0.1:1"
    for action in ("check", "run"):
        code, out, err = pipeline(action, shop, "--master", nowhere)
        assert (code, out.count("wrong")) == (1, 0)
        said = err.splitlines()[-1]
        assert said.startswith(f"barnabas pipeline: --master {nowhere}: no Spark master listens")
    assert pipeline("run", shop, "--master", "steam")[0] == 2


def flow(**changed: object) -> FlowReport:
    fields: dict[str, object] = {
        "name": "counts",
        "state": "running",
        "rows": 12_345,
        "rows_per_second": 99.6,
        "batches": 3,
        "batch_ms": 1250,
        "lag": 7,
        "behind_s": 2.4,
        "at_least": False,
        "state_rows": 10,
        "state_bytes": 2048,
        "watermark": "2026-01-02T03:04:05.000Z",
    }
    return FlowReport(**{**fields, **changed})  # type: ignore[arg-type]


def test_flows_are_shown_as_cells_and_lines() -> None:
    assert cells(flow()) == [
        *("counts", "running", "12,345", "100", "7", "2 s", "1,250 ms", "10 rows, 2.0 KiB"),
        "03:04:05",
    ]
    assert list(plain([flow()])) == [
        "counts: running, 12,345 rows, 100/s, lag 7 (2 s), batch 1,250 ms, state 10 rows, 2.0 KiB"
    ]
    nothing = flow(lag=None, behind_s=None, state_rows=None, watermark=None, batch_ms=None)
    assert list(plain([nothing])) == ["counts: running, 12,345 rows, 100/s, batch -"]
    assert behind(flow(at_least=True, behind_s=30.0)) == ">30 s"


def test_flows_are_drawn_as_a_table() -> None:
    from rich.console import Console

    with open("/dev/null", "w") as nowhere:
        console = Console(width=140, record=True, file=nowhere)
        console.print(table([flow(), flow(name="other", state="queued", lag=None)]))
        head, *rows = [line for line in console.export_text().splitlines() if line.strip()]
    assert head.split() == [
        "flow",
        "rows",
        "rows/s",
        "lag",
        "behind",
        "batch",
        "state",
        "watermark",
    ]
    assert any(row.split()[0] == "counts" and "10 rows, 2.0 KiB" in row for row in rows)
    assert any(row.split()[:2] == ["other", "queued"] for row in rows)
