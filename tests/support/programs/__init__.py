"""emceepee with something changed, as programs that a test starts."""
