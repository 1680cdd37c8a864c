"""What goes wrong, and what it costs: broken networks, load, restarts."""
