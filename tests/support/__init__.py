"""What the tests stand on: a clock that only they move, backends they script, and real processes they talk to."""
