"""What tests against a running broker share: which broker, and one of it per worker.

`--broker=apache` runs the same tests against a real Apache Kafka: so they are known to be right.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:  # `python -m pytest` has put it there, plain `pytest` has not
    sys.path.insert(0, str(ROOT))

from tools.apache_kafka import Distribution, Unavailable  # noqa: E402
from tools.processes import RunningBroker, start_barnabas  # noqa: E402

# That the machine is busy is no failure. Every run of the suite draws the same examples, as the
# simulation has its seeds; `make chaos` draws new ones, and more (--hypothesis-profile=explore).
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("suite", unhurried, derandomize=True)
settings.register_profile("explore", unhurried, max_examples=1000, print_blob=True)
settings.load_profile("suite")

# A shell that runs the suite in the background has it ignore Ctrl-C, which some tests send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--broker",
        choices=["barnabas", "apache"],
        default="barnabas",
        help="the broker that compat and interop tests talk to",
    )


@pytest.fixture(scope="session")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningBroker]:
    """One broker process for all tests of this worker; each test has topics of its own."""
    data_dir = tmp_path_factory.mktemp("broker") / "data"
    if request.config.getoption("--broker") == "apache":
        try:
            running = Distribution.fetch("3.9").start(data_dir)
        except Unavailable as why:
            pytest.skip(str(why))
    else:
        # As the other one here: a group of one member need not wait for more.
        running = start_barnabas(data_dir, options={"group.initial.rebalance.delay.ms": "0"})
    yield running
    running.stop()


@pytest.fixture(scope="session")
def bootstrap(broker: RunningBroker) -> str:
    """The address to give to a client."""
    return broker.bootstrap
