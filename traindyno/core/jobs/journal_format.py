"""What a shared job's parent process reads and writes. Runs on Python 3.8 (frozen images).

The job's document is a file of the channel ``DOCUMENT_CHANNEL``, ``<job id>.json``. In the folder
that SageMaker copies to the job's checkpoint prefix while it runs:

    <run id>/step_log/<job name>/…                 the step log of the run, as in a job of its own
    <run id>/state/…                               its checkpoints
    <run id>/ended/<job name>/<host>.json          how it ended on that host, written last (rename)
    journal/<job name>/<host>.jsonl                what the parent on that host did, a line each

A run has ended if each host's file is there, whose ``files`` all have the bytes and checksums that
it says. Files of earlier attempts, which have other job names, stay: what is deleted here is
deleted in S3. No order of uploads is promised.

Fields of a file of an end: ``version``, ``run_id``, ``job_name``, ``host``, ``hosts`` (all of them;
each has a file), ``reason``, ``exit_code`` and ``signal`` (of the process that gave the reason, or
null), ``failed_host`` (where it was, or null), ``failure`` (the run's failure file on this host,
else the last lines of its output if it failed, or null), ``oom_kills`` (processes that the kernel
killed for memory while it ran), ``began_at`` and ``ended_at`` (epoch seconds), ``own_milliseconds``
(from the barrier at which it began to the end of its clean-up), ``place`` (from 1, among the runs
that began since the parent started), ``leftovers`` (``processes``, ``shared_memory``,
``device_mebibytes`` → number), ``bound`` (of a run that was outpaced, else null: ``by``, the run
ahead of it; ``steps``, how many were compared; ``least_ratio``, its time for the whole workload ÷
that run's, as small as the scatter of steps and of runs allows), ``batch`` (of a run whose batch
was searched, else null: the ``batch`` that was measured, and ``probes``, each with ``batch``,
``fits``, ``peak_bytes`` and ``samples_per_second``, null if unknown), and ``files``: path below the
folder → ``{"bytes", "sha256"}``.

Fields of a line of the journal, besides those of each line: parent_started: ``version``,
``job_id``, ``host``, ``hosts``, ``runs``; run_began: ``run_id``, ``place``; run_ended: ``run_id``,
``reason``; run_skipped: ``run_id``; warm_up_began: none; warmed_up: ``own_milliseconds``;
probe_began: ``run_id``, ``batch``; probed: ``run_id``, ``own_milliseconds``, and what a probe of
``batch`` above has, or its ``batch`` only if it does not tell; run_left: ``run_id``, ``reason`` (of
``LEFT_REASONS``), ``began`` (whether it, or a probe of its batch, had begun); parent_ended:
``reason`` (null, or of ``LEFT_REASONS``). A parent that starts again under the same job name (a
spot interruption) goes on in the same file, after another parent_started. A file without
parent_ended after the last parent_started is of a parent that died. In a job that nobody stopped
and that no limit ended, a run that was left as stopped, after it had begun, has ended its parent.
"""

import json
from typing import Any, Dict, Optional

FORMAT_VERSION = 1
PROGRAM = "traindyno_runs.py"
# Names the job's document; set in the job's environment, and absent in a job of one run.
DOCUMENT_VARIABLE = "TRAINDYNO_JOB_DOCUMENT"
DOCUMENT_CHANNEL = "runs"
# Marks the processes that a parent started: <job name>/<host>:<folder>
MARK_VARIABLE = "TRAINDYNO_PARENT"
# Where several hosts are one machine: what is at /opt/ml, where the parents meet, and which program
# is torchrun there
OPT_ML_VARIABLE = "TRAINDYNO_OPT_ML"
MASTER_ADDRESS_VARIABLE = "TRAINDYNO_MASTER_ADDRESS"
MASTER_PORT_VARIABLE = "TRAINDYNO_MASTER_PORT"
TORCHRUN_VARIABLE = "TRAINDYNO_TORCHRUN"
# The folder of shared memory, on a machine that only this job uses. With others, what they left
# can't be told from what they will use, nor their memory of devices from this job's.
SHARED_MEMORY_VARIABLE = "TRAINDYNO_SHARED_MEMORY"
# Names the folder that SageMaker copies to the job's checkpoint prefix
FOLDER_VARIABLE = "TRAINDYNO_JOB_FOLDER"
CONTAINER_FOLDER = "/opt/ml/checkpoints"
ENDED = "ended"
JOURNAL = "journal"
STEP_LOG = "step_log"
STATE = "state"
# In the folder of the job's output: <run id>.<host>.log
LOGS = "logs"
# How a line of a run begins in the job's log, and a word in which it is changed there: the training
# toolkit would keep all later lines
RUN_LINE = "[{}] "
ERROR = "Error"
INSTEAD_OF_ERROR = "Err-or"

# How the parent starts a run
PROCESS = "process"
TORCHRUN = "torchrun"

# Events of the journal; every line has ``event``, ``time`` (epoch seconds) and
# ``elapsed_milliseconds`` since the parent's first line, by a monotonic clock
PARENT_STARTED = "parent_started"
PARENT_ENDED = "parent_ended"
RUN_BEGAN = "run_began"
RUN_ENDED = "run_ended"
RUN_SKIPPED = "run_skipped"  # it had ended in an earlier attempt
# The throw-away run before the first one.
WARM_UP_BEGAN = "warm_up_began"
WARMED_UP = "warmed_up"
# A throw-away run that shows whether a batch fits.
PROBE_BEGAN = "probe_began"
PROBED = "probed"
RUN_LEFT = "run_left"  # not started, or not finished, for the next attempt: ``reason``

# Reasons for the end of a run. A run that the job's deadline cut off is left, unless it was the
# attempt's first.
EXITED = (
    "exited"  # all its processes exited on every host, or the first that failed made the others end
)
TIME_LIMIT = "time_limit"  # its own limit, or the limit of a job that carried only this run
JOBS_DIED = "jobs_died"  # it ended the job, or the job died, so often; it is not started again
MOST_DEATHS = 2
DEVICE_BUSY = "device_busy"  # the device's memory was not freed before it: it was not started
THROWN_AWAY = "thrown_away"  # a throw-away run has done its steps; no run of the document ends so
OUTPACED = "outpaced"  # it is so far behind an earlier run of the job that it can't win
STALLED = "stalled"  # a step lasts far longer than its earlier ones, and no other run is to compare
EQUAL_BATCHES = "equal_batches"  # its processes train on the same rows and do not say that they do
REASONS = (EXITED, TIME_LIMIT, JOBS_DIED, DEVICE_BUSY, OUTPACED, STALLED, EQUAL_BATCHES)

# Why a run is left for the next attempt
DEADLINE = "deadline"  # the job had too little time for it
STOPPED = "stopped"  # SIGTERM: a stop, a spot interruption, or a run that ends its parent
PEER_LOST = "peer_lost"  # another host ended, or was silent for too long
NOT_RECORDED = "not_recorded"  # it ended, but its end could not be written
LEFT_REASONS = (DEADLINE, STOPPED, PEER_LOST, NOT_RECORDED)


def read_object(text: bytes) -> Optional[Dict[str, Any]]:
    """Read the object of a line; None for a line that a full disk or a death has damaged."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
