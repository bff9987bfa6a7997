"""The project that `init` writes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.spec import read_spec
from barnabas.pipeline.templates import Project


def made(directory: Path, **options: str) -> dict[str, str]:
    return Project(directory, "broker:9092", **options).files()  # type: ignore[arg-type]


@pytest.mark.parametrize("language", ["python", "sql"])
@pytest.mark.parametrize("bad_records", ["dead-letter", "fail"])
def test_every_place_is_filled_and_python_is_python(
    tmp_path: Path, language: str, bad_records: str
) -> None:
    for place, text in made(tmp_path / "shop", language=language, bad_records=bad_records).items():
        assert "@" not in text.replace("@dp", ""), place
        assert all(len(line) <= 100 for line in text.splitlines() if str(tmp_path) not in line)
        if place.endswith(".py"):
            ast.parse(text)


def test_a_python_project_is_one_file_of_three_flows(tmp_path: Path) -> None:
    files = made(tmp_path / "shop")
    assert list(files) == ["spark-pipeline.yml", "transformations/clicks.py", ".gitignore"]
    text = files["transformations/clicks.py"]
    assert text.count("@dp.append_flow") == 3
    assert text.count('"exactlyOnce": "true"') == 2
    assert '{"kafka.bootstrap.servers": "broker:9092"}' in text
    assert f"file://{tmp_path}/shop/files/page-counts" in text
    assert f'storage: "file://{tmp_path}/shop/storage"' in files["spark-pipeline.yml"]


@pytest.mark.parametrize("language", ["python", "sql"])
def test_client_options_stay_in_their_file(tmp_path: Path, language: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=old:1\nsecurity.protocol=SSL\nssl.key.password=secret\n")
    files = Project(tmp_path, "b:1", language, client_file=file).files()  # type: ignore[arg-type]
    assert "secret" not in "".join(files.values())
    [text] = [text for name, text in files.items() if name.endswith(".py")]
    head = text[: text.index("SCHEMA =")].replace("from pyspark", "# from pyspark")
    found: dict[str, dict[str, str]] = {}
    exec(head, found)
    assert found["SERVERS"] == {
        "kafka.bootstrap.servers": "b:1",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.key.password": "secret",
    }


def test_an_sql_project_computes_in_sql(tmp_path: Path) -> None:
    files = made(tmp_path / "shop", language="sql")
    assert files["transformations/clicks.sql"].count("CREATE TEMPORARY VIEW") == 3
    assert "withWatermark" not in files["transformations/topics.py"]


@pytest.mark.parametrize("language", ["python", "sql"])
def test_a_project_that_fails_has_no_dead_letters(tmp_path: Path, language: str) -> None:
    project = Project(tmp_path, "b:1", language, "fail")  # type: ignore[arg-type]
    text = "".join(project.files().values())
    assert "dead_letters" not in text
    assert "raise_error" in text
    assert project.topics == ("clicks", "page-counts")


def test_nothing_is_replaced(tmp_path: Path) -> None:
    project = Project(tmp_path / "shop", "b:1")
    assert (tmp_path / "shop" / "spark-pipeline.yml") in project.write()
    with pytest.raises(PipelineError, match=r"spark-pipeline.yml: exists"):
        project.write()


def test_a_folder_of_any_name_gives_a_name(tmp_path: Path) -> None:
    project = Project(tmp_path / 'a "b" {c}', "b:1")
    assert project.name == "a--b---c-"
    ast.parse(project.files()["transformations/clicks.py"])


@pytest.mark.parametrize("name", ["2026", "null", "1e3", "on", "-"])
def test_a_name_that_yaml_would_not_take_for_a_text_is_read_back(tmp_path: Path, name: str) -> None:
    pytest.importorskip("yaml", reason="pip install 'barnabas[spark]'")
    Project(tmp_path / name, "b:1").write()
    assert read_spec(tmp_path / name).name == name


def test_more_configuration_stands_in_the_spec(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="pip install 'barnabas[spark]'")
    more = {"spark.driver.memory": "2g", "spark.a": 'with "quotes"'}
    text = Project(tmp_path, "b:1", configuration=more).files()["spark-pipeline.yml"]
    found = yaml.safe_load(text)["configuration"]
    assert more.items() <= found.items()
    assert found["spark.sql.shuffle.partitions"] == "2"
