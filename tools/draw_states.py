"""Draw the states of a transaction into docs/design/transactions.md, from their table.

python tools/draw_states.py            write the picture
python tools/draw_states.py --check    fail when it is stale
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from barnabas.transactions.state import STEPS, State

PAGE = Path(__file__).resolve().parent.parent / "docs" / "design" / "transactions.md"
BLOCK = re.compile(r"(?<=<!-- drawn by tools/draw_states.py -->\n).*?(?=<!-- end -->)", re.DOTALL)


def picture() -> str:
    """Return the table as a diagram."""
    steps = [f"    [*] --> {State.EMPTY.title}"]
    for source, targets in STEPS.items():
        steps += [f"    {source.title} --> {target.title}" for target in targets]
        if not targets:
            steps.append(f"    {source.title} --> [*]")
    return "\n".join(["```mermaid", "stateDiagram-v2", *steps, "```", ""])


def main(arguments: list[str]) -> int:
    text = PAGE.read_text()
    drawn, count = BLOCK.subn(lambda _: picture(), text)
    if count != 1:
        print(f"{PAGE.name} has {count} places for the picture, not one", file=sys.stderr)
        return 1
    if arguments == ["--check"]:
        if drawn != text:
            print(f"{PAGE.name} is stale: run tools/draw_states.py", file=sys.stderr)
        return int(drawn != text)
    PAGE.write_text(drawn)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
