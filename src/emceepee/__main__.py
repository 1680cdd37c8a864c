"""`python -m emceepee` is the `emceepee` command."""

from emceepee.cli.main import main

raise SystemExit(main())
