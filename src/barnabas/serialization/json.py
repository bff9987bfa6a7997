"""JSON; the serializer is `JsonSerializer` in `barnabas.model.serializer`, which also reads."""

from __future__ import annotations

from barnabas.model.serializer import JsonSerializer


class JsonDeserializer(JsonSerializer):
    """Parsed JSON, as lists, dicts, strings and numbers."""
