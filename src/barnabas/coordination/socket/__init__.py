"""A tree that one process serves to others on its machine, over a Unix socket."""
