"""Check that every generated file is what its generator would write now (`--write` writes them)."""

import subprocess
import sys

GENERATORS = (
    ["-m", "barnabas.wire.generate"],
    ["tools/error_classes.py"],
    ["tools/option_reference.py"],
    ["-m", "tools.command_reference"],
    ["-m", "tools.man_page"],
    ["-m", "tools.kafka_tools_reference"],
    ["-m", "tools.authorization_reference"],
    ["-m", "tools.metric_reference"],
    ["tools/dashboards.py"],
    ["-m", "tools.logger_reference"],
    ["tools/draw.py"],
    ["tools/compatibility.py"],
)


def main(arguments: list[str]) -> int:
    extra = [] if arguments == ["--write"] else ["--check"]
    results = [subprocess.run([sys.executable, *command, *extra]) for command in GENERATORS]
    return max(result.returncode for result in results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
