"""Backends that are child processes: their pipes, their lives, and their ends."""
