"""A broker's sockets: listeners, connections, limits, and the routing of requests to handlers."""
