"""Draw the diagrams of docs/design from the code that they show.

python tools/draw.py            write them
python tools/draw.py --check    fail when one is stale
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import grimp

from barnabas.transactions.state import STEPS, State

PAGES = Path(__file__).resolve().parent.parent / "docs" / "design"
BLOCK = re.compile(r"(<!-- drawn by tools/draw\.py: (\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)

Edges = Mapping[str, set[str]]
"""What each package imports directly."""


def transaction_states() -> list[str]:
    """Return the states of a transaction, and the steps between them."""
    steps = [f"    [*] --> {State.EMPTY.title}"]
    for source, targets in STEPS.items():
        steps += [f"    {source.title} --> {target.title}" for target in targets]
        if not targets:
            steps.append(f"    {source.title} --> [*]")
    return ["stateDiagram-v2", *steps]


def layers() -> list[str]:
    """Return which package imports which, without what follows from other arrows."""
    return _flowchart(_imports("barnabas"))


def rooms() -> list[str]:
    """Return which room of the broker imports which, without what follows from other arrows."""
    return _flowchart(_imports("barnabas.broker"))


def _imports(root: str) -> Edges:
    graph = grimp.build_graph("barnabas", exclude_type_checking_imports=True)
    children = sorted(graph.find_children(root))
    edges: dict[str, set[str]] = {}
    for child in children:
        inside = {child, *graph.find_descendants(child)}
        imported = {
            target
            for module in inside
            for target in graph.find_modules_directly_imported_by(module)
        }
        edges[_last(child)] = {
            _last(other)
            for other in children
            if other != child
            and any(target == other or target.startswith(f"{other}.") for target in imported)
        }
    return edges


def _last(module: str) -> str:
    return module.rpartition(".")[2]


def _reachable(edges: Edges, start: Iterable[str]) -> set[str]:
    found: set[str] = set()
    waiting = list(start)
    while waiting:
        package = waiting.pop()
        if package not in found:
            found.add(package)
            waiting += edges[package]
    return found


def _flowchart(edges: Edges) -> list[str]:
    arrows = []
    for source, targets in edges.items():
        for target in sorted(targets):
            others = targets - {target}
            if target not in _reachable(edges, others):
                arrows.append(f"    {source} --> {target}")
    return ["flowchart TD", *arrows]


PICTURES: dict[str, Callable[[], list[str]]] = {
    "transaction_states": transaction_states,
    "layers": layers,
    "rooms": rooms,
}


def _drawn(block: re.Match[str]) -> str:
    return block[1] + "\n".join(["```mermaid", *PICTURES[block[2]](), "```", ""])


def main(arguments: list[str]) -> int:
    stale, seen = [], []
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text()
        seen += [block[2] for block in BLOCK.finditer(text)]
        drawn = BLOCK.sub(_drawn, text)
        if drawn != text:
            stale.append(page.name)
            if arguments != ["--check"]:
                page.write_text(drawn)
    if sorted(seen) != sorted(PICTURES):
        print(f"the pages have {sorted(seen)}, not each of {sorted(PICTURES)}", file=sys.stderr)
        return 1
    if arguments == ["--check"] and stale:
        print(f"{', '.join(stale)}: stale, run tools/draw.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
