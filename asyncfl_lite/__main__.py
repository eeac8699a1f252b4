"""The entry point of ``python -m asyncfl_lite``, which does the same as the command ``asyncfl-lite``."""

import sys

from asyncfl_lite.cli import main

if __name__ == "__main__":
    sys.exit(main())
