"""Quotas: rates over sampled windows, token buckets, and who shares one."""
