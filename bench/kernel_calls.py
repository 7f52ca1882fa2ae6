"""``python -m bench.kernel_calls APP``: runs a CDK app and prints how many messages it sends to the CDK's process."""

import runpy
import sys
from typing import Any

from jsii._kernel.providers import process


def main(app: str) -> None:
    count = 0
    send = process._NodeProcess.send

    def counted(self: Any, *arguments: Any) -> Any:
        nonlocal count
        count += 1
        return send(self, *arguments)

    process._NodeProcess.send = counted  # type: ignore[method-assign, assignment]
    runpy.run_path(app, run_name="__main__")
    sys.stdout.write(f"{count}\n")


if __name__ == "__main__":
    main(sys.argv[1])
