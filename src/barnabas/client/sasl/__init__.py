"""SASL mechanisms from the client's side: each is a short conversation without any IO."""
