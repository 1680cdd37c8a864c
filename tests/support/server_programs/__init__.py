"""Backends that are processes: programs that behave as told, and how they are started."""
