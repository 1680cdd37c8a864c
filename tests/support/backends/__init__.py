"""Servers that the tests start as processes of their own. Standard library only: they start in milliseconds."""
