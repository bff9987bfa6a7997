"""`python -m barnabas.cli` is the `barnabas` command."""

from barnabas.cli.console import main

if __name__ == "__main__":
    raise SystemExit(main())
