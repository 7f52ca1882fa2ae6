"""What a shared job's parent process reads and writes. Runs on Python 3.8 (frozen images).

The job's document is a file of the channel ``DOCUMENT_CHANNEL``, ``<job id>.json``. In the folder that SageMaker copies
to the job's checkpoint prefix while it runs:

    <run id>/step_log/<job name>/…                 the step log of the run, as in a job of its own
    <run id>/state/…                               its checkpoints
    <run id>/ended/<job name>/<host>.json          how it ended on that host, written last, by rename
    journal/<job name>/<host>.jsonl                what the parent on that host did, a line each

A run has ended if each host's file is there, whose ``files`` all have the bytes and checksums that it says. Files of
earlier attempts, which have other job names, stay: what is deleted here is deleted in S3. No order of uploads is
promised.
"""

FORMAT_VERSION = 1
PROGRAM = "traindyno_runs.py"
# Names the job's document; set in the job's environment, and absent in a job of one run.
DOCUMENT_VARIABLE = "TRAINDYNO_JOB_DOCUMENT"
DOCUMENT_CHANNEL = "runs"
# Names the folder that SageMaker copies to the job's checkpoint prefix
FOLDER_VARIABLE = "TRAINDYNO_JOB_FOLDER"
CONTAINER_FOLDER = "/opt/ml/checkpoints"
ENDED, JOURNAL = "ended", "journal"
STEP_LOG, STATE = "step_log", "state"

# How the parent starts a run
PROCESS, TORCHRUN = "process", "torchrun"

# Events of the journal; every line has ``event``, ``time`` (epoch seconds) and ``elapsed_milliseconds`` since the
# parent's first line, by a monotonic clock
PARENT_STARTED, PARENT_ENDED = "parent_started", "parent_ended"
RUN_BEGAN, RUN_ENDED = "run_began", "run_ended"
RUN_SKIPPED = "run_skipped"  # it had ended in an earlier attempt
RUN_LEFT = "run_left"  # not started, or not finished, for the next attempt: ``reason``

# Reasons for the end of a run. A run that the job's deadline cut off is left, unless it was the attempt's first.
EXITED = "exited"  # all its processes exited on every host, or the first that failed made the others end
TIME_LIMIT = "time_limit"  # its own limit, or that of the job, which it had for itself
JOBS_DIED = "jobs_died"  # the job died twice while it ran; it is not started again
DEVICE_BUSY = "device_busy"  # the device's memory was not freed before it: it was not started
REASONS = (EXITED, TIME_LIMIT, JOBS_DIED, DEVICE_BUSY)
