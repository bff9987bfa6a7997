"""A broker's sockets: listeners, connections, limits, and which handler answers a request."""
