"""Names in paths: any text but the empty one, percent-encoded, slashes included.

Route("/groups/{group:segment}", page)
"""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes

from starlette.convertors import CONVERTOR_TYPES, Convertor, register_url_convertor
from starlette.exceptions import HTTPException


class SegmentConvertor(Convertor[str]):
    """One segment of a path as it was sent, to the text that it stands for."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """Return the text; raise HTTPException(404) if it is none."""
        try:
            return unquote_to_bytes(value).decode("utf-8")
        except UnicodeDecodeError:
            raise HTTPException(404, "A name in this address is not UTF-8.") from None

    def to_string(self, value: str) -> str:
        """Return the segment for a string."""
        return segment(value)


def segment(value: str) -> str:
    """Return a string as one segment of an address: slashes and dots too are escaped."""
    quoted = quote(value, safe="", errors="surrogatepass")
    # Browsers resolve these before they ask.
    return quoted.replace(".", "%2E") if quoted in (".", "..") else quoted


def register() -> None:
    """Let routes use `{name:segment}`; repeating this is a no-op."""
    if "segment" not in CONVERTOR_TYPES:
        register_url_convertor("segment", SegmentConvertor())
