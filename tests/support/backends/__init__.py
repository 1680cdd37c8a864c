"""Backends in the test's own process."""
