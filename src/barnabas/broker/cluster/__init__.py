"""A broker in its cluster: its registration, the controller, its peers, topics and configs."""
