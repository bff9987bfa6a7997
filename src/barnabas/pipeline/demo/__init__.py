"""The parts of `barnabas demo`: clicks, the processes that they run through, and what comes out."""
