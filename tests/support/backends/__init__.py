"""Servers that tests run behind emceepee."""
