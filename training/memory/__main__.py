"""Estimates the memory of configurations, for a planner in another process.

Usage: python -m training.memory < REQUEST. The request is one JSON object: a ``workload``, a
``model_path`` that transformers can load (or null), and a list of ``settings``. One JSON line is
printed for each of them, in this order.
"""

import json
import sys
from dataclasses import replace
from typing import Any, TextIO

from traindyno.core.documents.stored import to_document
from traindyno.core.suite.settings import Settings
from traindyno.core.suite.suite_file import parse_part
from traindyno.core.suite.workload import Workload
from training.memory.estimate import Findings


def main(request: dict[str, Any], answers: TextIO) -> None:
    # Code that is stored with a model runs in jobs only.
    workload = replace(parse_part(request["workload"], Workload), trust_remote_code=False)
    findings = Findings(workload, model_path=request["model_path"])
    for document in request["settings"]:
        answers.write(json.dumps(to_document(findings.find(parse_part(document, Settings)))) + "\n")
        answers.flush()


if __name__ == "__main__":
    standard_output, sys.stdout = sys.stdout, sys.stderr  # libraries print too
    main(json.load(sys.stdin), standard_output)
