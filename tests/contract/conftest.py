"""Property tests run the same everywhere: no deadline on a busy machine, and nothing written to disk."""

from hypothesis import settings

settings.register_profile("emceepee", deadline=None, database=None, max_examples=100)
settings.load_profile("emceepee")
