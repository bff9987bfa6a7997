"""The parts of `barnabas demo`: clicks, the processes that handle them, and the results."""
