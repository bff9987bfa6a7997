"""Files that pages need: read once, and named by their contents, so that browsers keep them."""

from __future__ import annotations

import gzip
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

FOLDER = Path(__file__).parent / "static"

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

PREFIX = "/static/"


class StaticFiles:
    """The files of one folder, each under a name that changes with its contents."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._contents: dict[str, tuple[str, bytes, bytes]] = {}
        self._names: dict[str, str] = {}
        for path in sorted(folder.iterdir()):
            kind = TYPES.get(path.suffix)
            if kind is None:
                continue
            content = path.read_bytes()
            name = f"{path.stem}.{sha256(content).hexdigest()[:12]}{path.suffix}"
            self._names[path.name] = name
            self._contents[name] = (kind, content, gzip.compress(content, mtime=0))

    def address(self, name: str) -> str:
        """Return the path under which a file is served now."""
        return PREFIX + self._names[name]

    @property
    def total_bytes(self) -> int:
        """Return the size of all files together, uncompressed."""
        return sum(len(content) for _, content, _ in self._contents.values())

    async def serve(self, request: Request) -> Response:
        """Serve a file by its current name; it never changes under that name."""
        found = self._contents.get(request.path_params["name"])
        if found is None:
            return PlainTextResponse("There is no such file.", 404)
        kind, content, packed = found
        headers = {
            "content-type": kind,
            "cache-control": "public, max-age=31536000, immutable",
            "vary": "accept-encoding",
        }
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(packed, headers=headers | {"content-encoding": "gzip"})
        return Response(content, headers=headers)
