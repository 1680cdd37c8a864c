"""Replicas: processes that share a store, and pass requests on to each other."""
