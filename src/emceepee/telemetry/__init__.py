"""Structured logs, spans, metrics, and the audit log.

May import clock, state, and below. Output goes to stderr or a file, never to stdout, and never contains secrets. Read
`logs.py` and `spans.py` first. `redaction.py` masks secrets in text, and `argument_mask.py` masks them in arguments.
"""
