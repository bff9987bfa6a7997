"""The time zone in which a viewer wants to see times: a cookie of the browser, UTC without one."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from starlette.requests import Request

COOKIE = "barnabas-zone"
NAME_MAX = 64


def zone_of(name: str) -> tzinfo:
    """Return a time zone by its name, or by its offset such as +02:00; UTC for unknown ones."""
    if name == "UTC":
        return UTC
    matched = re.fullmatch(r"([+-])([01][0-9]):([0-5][0-9])", name)
    if matched is not None:
        sign, hours, minutes = matched.groups()
        away = timedelta(hours=int(hours), minutes=int(minutes))
        return timezone(-away if sign == "-" else away)
    if re.fullmatch(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+){0,2}", name) is None:
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # OSError: the name of a folder
        return UTC


def zone_name(request: Request) -> str:
    """Return the name of the zone that a viewer has chosen; UTC if there is no such zone."""
    name = request.cookies.get(COOKIE, "UTC")[:NAME_MAX]
    return "UTC" if zone_of(name) is UTC else name


def written(milliseconds: int, zone: tzinfo) -> str:
    """Return a time after 1970 in a zone: `2026-01-31 12:00:00.000 UTC`, `… +01:00`."""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    try:
        moment = moment.astimezone(zone)
    except OverflowError:  # the last day of the calendar
        zone = UTC
    text = moment.isoformat(" ", "milliseconds")
    return f"{text[:-6]} {'UTC' if zone is UTC else text[-6:]}"
