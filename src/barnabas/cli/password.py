"""A new password, from a terminal or a file: on a command line, other users could read it."""

from __future__ import annotations

import getpass
import os
import stat
import sys
import warnings

from barnabas.model.errors import InvalidValueError


def new_password(user: str, path: str | None) -> str:
    """Return a user's new password: typed twice, or from a file (`-`: from standard input)."""
    return _typed(user) if path is None else _read(path)


def _typed(user: str) -> str:
    password = _ask(f"New password of {user}: ")
    if not password:
        raise InvalidValueError("the password is empty")
    if _ask("Repeat it: ") != password:
        raise InvalidValueError("the two passwords differ; nothing was changed")
    return password


def _ask(prompt: str) -> str:
    with warnings.catch_warnings():
        # Without a terminal the password would be shown, and end up in a log.
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return getpass.getpass(prompt)
        except (getpass.GetPassWarning, EOFError):
            raise InvalidValueError(
                "there is no terminal to ask for the password; "
                "use --password-file FILE, or --password-file - for standard input"
            ) from None


def _read(path: str) -> str:
    name = "standard input" if path == "-" else path
    try:
        if path == "-":
            content = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as file:
                if os.fstat(file.fileno()).st_mode & (stat.S_IRGRP | stat.S_IROTH):
                    warning = f"others can read it; use: chmod 600 {path}"
                    print(f"barnabas: --password-file {path}: {warning}", file=sys.stderr)
                content = file.read()
        text = content.decode().removesuffix("\n").removesuffix("\r")
    except OSError as failure:
        reason = (failure.strerror or str(failure)).lower()
        raise InvalidValueError(f"--password-file {name}: {reason}") from failure
    except UnicodeDecodeError:
        raise InvalidValueError(f"--password-file {name}: not UTF-8") from None
    if not text:
        raise InvalidValueError(f"--password-file {name}: the password is empty")
    if "\n" in text:
        raise InvalidValueError(f"--password-file {name}: must have one line, the password")
    return text
