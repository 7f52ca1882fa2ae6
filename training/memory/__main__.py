"""Estimates the memory of configurations, for a planner in another process.

Usage: python -m training.memory. The first line of the input is a workload whose model has its
configuration. Each further one asks for ``settings``, and is answered by a line: the ``lines`` of
all batches, which are null where each batch has events of its own, with ``is_whole`` the ``whole``
estimate of this batch, or ``why_unknown``.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TextIO

from traindyno.core.documents.stored import to_document
from traindyno.core.errors import TraindynoError
from traindyno.core.suite.settings import Settings
from traindyno.core.suite.suite_file import parse_part
from traindyno.core.suite.workload import Workload
from training.memory.estimate import estimate_lines, estimate_memory
from training.models.flops import NOT_COUNTED


def main(requests: Iterable[str], answers: TextIO) -> None:
    lines = iter(requests)
    document = json.loads(next(lines))
    # Code that is stored with a model runs in jobs only.
    workload = replace(parse_part(document, Workload), trust_remote_code=False)
    for line in lines:
        answers.write(json.dumps(answer(workload, json.loads(line))) + "\n")
        answers.flush()


def answer(workload: Workload, request: dict[str, Any]) -> dict[str, Any]:
    settings = parse_part(request["settings"], Settings)
    name, estimate = (
        ("whole", estimate_memory) if request["is_whole"] else ("lines", estimate_lines)
    )
    try:
        return {name: to_document(estimate(workload, settings))}
    except (TraindynoError, *NOT_COUNTED) as error:
        # The planner continues without this estimate; the run itself may still show the memory
        # that it needs.
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return {"why_unknown": f"the estimate failed: {reason}"}


if __name__ == "__main__":
    standard_output, sys.stdout = sys.stdout, sys.stderr  # libraries print too
    main(sys.stdin, standard_output)
