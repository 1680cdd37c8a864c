"""Faults and their price: broken networks, load, and restarts."""
