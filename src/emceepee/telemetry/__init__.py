"""Seeing inside: structured logs and the spans that time a piece of work.

Everything goes to stderr or a file, never to stdout, and secrets never leave through here.
Start at `logs.py`; what counts as a secret is in `redaction.py`, among arguments in `argument_masking.py`.
"""
