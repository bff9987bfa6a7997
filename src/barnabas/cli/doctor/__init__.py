"""`barnabas doctor`: what is wrong between a client and its cluster, and with a broker's machine.

Probes measure and return checks: small objects with facts. `judge` is a plain decision about them,
and its result, a finding, is one line of the report.
"""
