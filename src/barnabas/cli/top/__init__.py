"""`barnabas top`: what a cluster does now: rates, lag, brokers and latency, live."""
