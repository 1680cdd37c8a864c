"""Serves a recording as an MCP server: `emceepee replay FILE` gives the recorded server's answers, in both eras.

May import miniserver and below. Read `recording_reader.py` first: it reads an untrusted file into a `Recording`.
`replay_script.py` finds the answer to a request, and `replayed_conversation.py` is the server. No module here connects
to a server, starts a program, or opens another file.
"""
