"""The data that servers and authorization servers publish about logins: challenges, metadata documents, and scopes.

May import `http1` and below. Read `metadata.py` first, which reads the documents; `well_known.py` computes their
addresses, and `challenge.py` reads the header of a 401 response.
"""
