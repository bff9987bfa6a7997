"""How the console's users reach this broker: requests without a socket, and their log-in."""
