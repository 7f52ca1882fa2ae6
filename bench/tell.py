"""Progress, for the person who waits: on the standard error, because the output is the
document's.
"""

import sys


def tell(message: str) -> None:
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()
