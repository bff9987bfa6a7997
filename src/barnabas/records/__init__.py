"""Record batches: build, inspect, iterate; compression; Arrow; the formats before magic 2."""
