"""What every broker knows of the cluster, and the tree in which it is stored."""
