"""SASL mechanisms of the client: each is a short conversation without any IO."""
