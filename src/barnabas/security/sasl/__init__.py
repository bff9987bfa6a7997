"""SASL on the broker's side: mechanisms as machines without IO, and the state of a connection."""
