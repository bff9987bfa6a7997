"""Try an installation: the command, a broker, both kinds of clients. Needs nothing but Barnabas.

python -I smoke.py KERNELS VERSION    with the interpreter into which it is installed
"""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

WAIT_S = 300


def main(kernels: str, version: str) -> None:
    """Fail with what is not as it should be."""
    import barnabas
    from barnabas import kernels as chosen
    from barnabas.producer.accumulator import Accumulator
    from barnabas.testing import Cluster

    place = Path(barnabas.__file__).resolve()
    assert place.is_relative_to(Path(sys.prefix).resolve()), f"{place} is not the installed one"
    assert barnabas.__version__ == version, barnabas.__version__
    for name in (chosen.NAME, Accumulator.__module__.split(".")[-2]):
        assert name == kernels, name
    assert (place.parent / "py.typed").exists()
    page = Path(sysconfig.get_path("data"), "share", "man", "man1", "barnabas.1")
    assert page.read_text().startswith('.\\" Written'), page

    program = Path(sysconfig.get_path("scripts"), "barnabas")
    assert run(program, "--version") == f"barnabas {version}\n"
    assert "usage: barnabas COMMAND" in run(program, "--help")
    assert "barnabas" in run(program, "completion", "bash")

    with tempfile.TemporaryDirectory() as directory:
        words = ("start", "--listen", "127.0.0.1:0", "--data-dir", directory)
        with subprocess.Popen([program, *words], stdout=subprocess.PIPE, text=True) as broker:
            try:
                ready = broker.stdout.readline()
                os.environ["BARNABAS_BOOTSTRAP"] = re.search(r"PLAINTEXT://(\S+)", ready)[1]
                use(program)
            finally:
                broker.terminate()
            last = broker.communicate(timeout=WAIT_S)[0].splitlines()[-1]
        assert (broker.returncode, last) == (0, "Barnabas stopped cleanly"), last

    with (
        Cluster() as cluster,
        barnabas.KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer,
    ):
        assert producer.send("fresh", b"value").get(timeout=WAIT_S).offset == 0


def use(program: Path) -> None:
    """Send and read records with the commands."""
    run(program, "topics", "create", "orders", "--partitions", "2")
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        run(program, "produce", "orders", "--codec", codec, given=f"{codec}\n")
    read = run(program, "consume", "orders", "--from", "beginning", "--exit-at-end")
    assert sorted(read.split()) == ["gzip", "lz4", "none", "snappy", "zstd"], read
    [topic] = json.loads(run(program, "topics", "describe", "orders", "--json"))
    assert len(topic["partitions"]) == 2
    assert "orders" in run(program, "kafka-topics", "--list", "--bootstrap-server", server())


def server() -> str:
    return os.environ["BARNABAS_BOOTSTRAP"]


def run(program: Path, *words: str, given: str = "") -> str:
    """Return what a command prints."""
    done = subprocess.run(
        [program, *words], input=given, text=True, capture_output=True, timeout=WAIT_S
    )
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


if __name__ == "__main__":
    main(*sys.argv[1:])
