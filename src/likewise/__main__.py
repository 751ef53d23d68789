"""`python -m likewise` is the command line."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # Python puts the working directory first, where a file called click.py would stand in for the library. It goes
    # last, so that nothing there hides an installed package.
    here = os.getcwd()  # noqa: PTH109 - pathlib takes longer to load than Ctrl-C should wait
    if sys.path and sys.path[0] in ("", here) and not sys.flags.safe_path:
        sys.path.append(sys.path.pop(0))

    from likewise.cli import main

    main()
