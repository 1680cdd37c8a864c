"""Test helpers: a fake clock, scripted backends, and real processes to talk to. README.md is the index."""
