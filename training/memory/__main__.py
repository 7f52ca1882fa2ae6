"""Estimates the memory of configurations, for a planner in another process.

Usage: python -m training.memory. The first line of the input is a workload whose model has its
configuration. Each further one asks for what to ``find``, and is answered by a line with it, or
with ``why_unknown``: the ``shape`` of the model, and of ``settings`` the ``lines`` of all batches,
which are null where each batch has events of its own, or the ``whole`` estimate of this batch.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TextIO

from traindyno.core.documents.stored import to_document
from traindyno.core.errors import TraindynoError
from traindyno.core.run.settings import Settings
from traindyno.core.run.workload import Workload
from traindyno.core.suite.suite_file import parse_part
from training.memory.estimate import estimate_lines, estimate_memory
from training.models.flops import NOT_COUNTED
from training.models.shape import measure_shape


def main(requests: Iterable[str], answers: TextIO) -> None:
    lines = iter(requests)
    document = json.loads(next(lines))
    # Code that is stored with a model runs in jobs only.
    workload = replace(parse_part(document, Workload), trust_remote_code=False)
    for line in lines:
        answers.write(json.dumps(answer(workload, json.loads(line))) + "\n")
        answers.flush()


def answer(workload: Workload, request: dict[str, Any]) -> dict[str, Any]:
    name = request["find"]
    try:
        if name == "shape":
            return {name: to_document(measure_shape(workload))}
        settings = parse_part(request["settings"], Settings)
        estimate = estimate_lines if name == "lines" else estimate_memory
        return {name: to_document(estimate(workload, settings))}
    except (TraindynoError, *NOT_COUNTED) as error:
        # The planner continues without this estimate; the run itself may still show the memory
        # that it needs.
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return {"why_unknown": f"the estimate failed: {reason}"}


if __name__ == "__main__":
    standard_output = sys.stdout
    sys.stdout = sys.stderr  # libraries print too
    main(sys.stdin, standard_output)
