"""Metrics that clients push (KIP-714): who should push what, and what was pushed.

    GetTelemetrySubscriptions ──▶ ClientInstances.subscribe ──▶ Instance: id, metrics, interval
    PushTelemetry ──▶ check_push ──▶ read_points (OTLP) ──▶ Instance.values

Nothing here reads a clock or a socket: `broker/network/client_telemetry.py` does.
"""
