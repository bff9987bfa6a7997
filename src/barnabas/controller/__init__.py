"""The controller: topics, partitions, leaders and configs, kept in the coordination tree."""
