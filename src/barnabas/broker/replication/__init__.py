"""How a broker follows other leaders, and which of its own followers are in sync."""
