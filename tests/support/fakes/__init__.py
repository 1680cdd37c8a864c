"""Stand-ins that only the test moves."""
