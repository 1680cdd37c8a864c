"""The console: who is logged in, and what the page shows."""
