"""What people and programs see of a broker from outside: metrics and health over HTTP."""
