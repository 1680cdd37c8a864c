"""Who speaks to a real emceepee process."""
