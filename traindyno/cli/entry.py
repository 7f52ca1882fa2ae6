"""The command's first module: it imports nothing that takes time, so that Ctrl-C is one line from
the first moment.
"""

import sys

INTERRUPTED = 130


def app() -> None:
    try:
        from traindyno.cli.main import app as main  # noqa: PLC0415  (what it imports takes a second)

        main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)  # noqa: T201  (the module that prints may not be there yet)
        sys.exit(INTERRUPTED)
