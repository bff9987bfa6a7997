"""Check that every generated file is what its generator would write now (`--write` writes them)."""

import subprocess
import sys

GENERATORS = (
    ["-m", "barnabas.wire.generate"],
    ["tools/error_classes.py"],
    ["tools/option_reference.py"],
    ["tools/command_reference.py"],
    ["-m", "tools.kafka_tools_reference"],
    ["tools/authorization_reference.py"],
    ["tools/metric_reference.py"],
    ["tools/dashboards.py"],
    ["tools/logger_reference.py"],
    ["tools/draw.py"],
)


def main(arguments: list[str]) -> int:
    extra = [] if arguments == ["--write"] else ["--check"]
    results = [subprocess.run([sys.executable, *command, *extra]) for command in GENERATORS]
    return max(result.returncode for result in results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
