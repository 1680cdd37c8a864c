"""Callers: they send bytes that are ready, check what comes back, and cost as little as possible besides."""
