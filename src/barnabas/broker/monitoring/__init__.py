"""What people and programs see of a broker from outside: its metrics, and its health."""
