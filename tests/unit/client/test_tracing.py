"""The hook for tracers: there is none until one is installed."""

from __future__ import annotations

from typing import Any

from barnabas.client.tracing import install, installed


def test_a_tracer_is_installed_and_removed() -> None:
    assert installed() is None
    tracing: Any = object()
    install(tracing)
    try:
        assert installed() is tracing
    finally:
        install(None)
    assert installed() is None
