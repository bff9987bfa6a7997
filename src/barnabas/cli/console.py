"""Entry point of the `barnabas` command: from here on, Ctrl-C is handled.

What the interpreter does before it loads this file is out of our hands; the rest, which takes
longer to import, is imported by `main`.
"""

from __future__ import annotations

from barnabas.cli.interruption import INTERRUPTION

INTERRUPTION.own_process()


def main() -> int:
    """Run the command line of this process, and return its exit code."""
    from barnabas.cli.main import main

    return main()
