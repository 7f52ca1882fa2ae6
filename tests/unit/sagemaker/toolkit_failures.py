"""Scripts that fail, each in its own way, and what AWS's training toolkit wrote of them.

`RECORD=1 pytest -m nightly tests/toolkit` writes the records.
"""

import re
from dataclasses import dataclass
from pathlib import Path

RECORDS = Path(__file__).parents[2] / "data/toolkit_failures.json"
TORCHRUN = "ddp"
VALUE = "rows = [1]\nif rows:\n    raise ValueError('the third batch is broken')\n"
KILL = "import os\nprint('step 7', flush=True)\nos.kill(os.getpid(), 9)\n"
MEMORY = (
    "import torch\nraise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 2 GiB')\n"
)
OWN = (
    "import sys\n"
    "from traindyno.callbacks.failure import report_failure\n"
    "report_failure('loss_diverged', 'rank 0: step 7: the loss is nan')\n"
    "sys.exit(1)\n"
)
# Of a preparation of ours; the others are scripts.
NO_FILES = "no files"
# The toolkit keeps no line of it; what torchrun wrote is recorded beside it.
SILENT = "killed, torchrun"
SILENT_LOG = "killed, torchrun, log"
# What differs between two machines, or two times.
PLACES = (
    (r"[EWI]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ \S*(?=torch/)", "E1128 12:00:00.000000 14 "),
    (r"\d{4}-\d\d-\d\d[ _]\d\d:\d\d:\d\d", "2026-11-28_12:00:00"),
    (r"\bpid\b:? \d+", "pid: 14"),
    (r"PID \d+", "PID 14"),
    (r"/\S*/bin/", "/opt/conda/bin/"),
    (r"/\S*/site-packages/", "/opt/conda/lib/python3.11/site-packages/"),
    (r"\s*-P\b", ""),
    # A frame is as wide as its longest line, which has the process's id.
    (r"={20,}", "=" * 60),
    (r"-{20,}", "-" * 60),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    script: str
    strategy: str = "single"


FAILURES = {
    "value": Failure(script=VALUE),
    "value, torchrun": Failure(script=VALUE, strategy=TORCHRUN),
    "exit status": Failure(
        script="import sys\nprint('no licence', file=sys.stderr)\nsys.exit(7)\n"
    ),
    "killed": Failure(script=KILL),
    SILENT: Failure(script=KILL, strategy=TORCHRUN),
    "segmentation fault": Failure(script="import os\nos.kill(os.getpid(), 11)\n"),
    "out of memory": Failure(script=MEMORY),
    "out of memory, torchrun": Failure(script=MEMORY, strategy=TORCHRUN),
    "host's memory": Failure(script="raise MemoryError\n"),
    "own outcome": Failure(script=OWN),
    "own outcome, torchrun": Failure(script=OWN, strategy=TORCHRUN),
}


def without_places(text: str) -> str:
    for pattern, words in PLACES:
        text = re.sub(pattern, words, text)
    return text
