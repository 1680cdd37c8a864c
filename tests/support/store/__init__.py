"""The engines of the store, and sessions to put into them."""
