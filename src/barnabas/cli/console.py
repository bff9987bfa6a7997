"""The process of the `barnabas` command: from here on, Ctrl-C is understood.

What the interpreter does before it comes to this file cannot be helped; importing the rest, which
takes longer, is what `main` does.
"""

from __future__ import annotations

from barnabas.cli.interruption import INTERRUPTION

INTERRUPTION.own_process()


def main() -> int:
    """Run the command line of this process, and return its exit code."""
    from barnabas.cli.main import main

    return main()
