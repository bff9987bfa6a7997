"""spark-pipeline.yml: what is read of it, and what is said about one that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("yaml", reason="pip install 'barnabas[spark]'")

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.spec import read_spec

GOOD = """\
name: shop
storage: file:///somewhere/storage
database: sales
libraries:
  - glob: {include: transformations/**}
  - glob: {include: more.sql}
configuration:
  spark.sql.shuffle.partitions: "2"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "transformations" / "deep").mkdir(parents=True)
    (tmp_path / "transformations" / "__pycache__").mkdir()
    for place in ("transformations/b.py", "transformations/deep/a.sql", "more.sql"):
        (tmp_path / place).write_text("")
    (tmp_path / "transformations/__pycache__/b.pyc").write_text("")
    (tmp_path / "spark-pipeline.yml").write_text(GOOD)
    return tmp_path


def test_a_spec_is_read(project: Path) -> None:
    spec = read_spec(project)
    assert (spec.name, spec.storage) == ("shop", "file:///somewhere/storage")
    assert (spec.catalog, spec.database) == (None, "sales")
    assert spec.local_storage == Path("/somewhere/storage")
    assert spec.configuration == {"spark.sql.shuffle.partitions": "2"}
    found = [str(each.relative_to(spec.directory)) for each in spec.files]
    assert found == ["transformations/b.py", "transformations/deep/a.sql", "more.sql"]


def test_storage_elsewhere_is_not_of_this_machine(project: Path) -> None:
    path = project / "spark-pipeline.yml"
    path.write_text(GOOD.replace("file:///somewhere/storage", "s3a://bucket/storage"))
    assert read_spec(path).local_storage is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: shop", "nmae: shop", "nmae: no such field; did you mean name?"),
        ("name: shop", "zzz: 1", "zzz: no such field; must be one of: name, storage"),
        ("name: shop\n", "", "name: must be set"),
        ("name: shop", "name: [1]", r"name: \[1\]: must be a string"),
        ("storage: file:///somewhere/storage", "storage: here", "storage: here: must be an abs"),
        ("database: sales", "catalog: 7", "catalog: 7: must be a string"),
        ('"2"', "2", "spark.sql.shuffle.partitions: 2: must be a string; put it in quotes"),
        ("transformations/**", "transformations/**/*.py", "must be a file, or a folder with"),
        ("more.sql", "less.sql", "libraries: less.sql: no such file"),
        ("{include: more.sql}", "more.sql", "must look like glob: {include: PATTERN}"),
        ("name: shop", "name: {shop", "spark-pipeline.yml:2: not valid YAML: "),
        (GOOD, "just words", "must have fields such as name"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(project: Path, old: str, new: str, message: str) -> None:
    (project / "spark-pipeline.yml").write_text(GOOD.replace(old, new))
    with pytest.raises(PipelineError, match=message) as failure:
        read_spec(project)
    assert "\n" not in str(failure.value)


def test_a_file_that_is_no_definition_is_named(project: Path) -> None:
    (project / "transformations" / "notes.txt").write_text("")
    with pytest.raises(PipelineError, match=r"transformations/notes.txt: must end in .py or .sql"):
        read_spec(project)


def test_a_folder_without_a_spec_or_with_two_is_refused(project: Path) -> None:
    (project / "spark-pipeline.yaml").write_text(GOOD)
    with pytest.raises(PipelineError, match="remove one"):
        read_spec(project)
    with pytest.raises(PipelineError, match=r"has no spark-pipeline.yml; write a project with"):
        read_spec(project / "transformations")
