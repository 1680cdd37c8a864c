"""A session with scripted backends, and what its replies say."""
