"""A broker among the others: its registration, the controller, its peers, topics and configs."""
