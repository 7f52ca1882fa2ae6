"""Makes the frozen environments and trains a small model with each frozen script; prints versions
and losses.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.frozen.environments import NoInterpreter, make_environment
from tests.frozen.trials import TRIALS, Trial, problems_of, run
from traindyno.api.sample_data import write_sample
from traindyno.core.step_log.reader import StepLog

SMALL_INPUTS = Path(__file__).parent / "small_inputs.py"


def main() -> int:
    try:
        pythons = {
            name: make_environment(name)
            for name in dict.fromkeys(trial.environment for trial in TRIALS)
        }
    except NoInterpreter as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        return max([_passed(trial, pythons[trial.environment], Path(scratch)) for trial in TRIALS])


def _passed(trial: Trial, python: Path, scratch: Path) -> int:
    """0 or 1, as an exit status."""
    inputs = _inputs(python, scratch / trial.environment)
    log = run(trial, python, inputs, scratch)
    problems = problems_of(trial, log)
    _say(f"{trial.name}: {_summary_of_log(log)}; {'FAILED' if problems else 'passed'}")
    for problem in problems:
        _say(f"  {problem}")
    return 1 if problems else 0


def _inputs(python: Path, folder: Path) -> Path:
    """Text and labelled lines of the standard library, and a tokenizer and a BERT that the
    environment made of them.
    """
    if not folder.exists():
        text = write_sample("sample:python-standard-library", folder / "text") / "text.txt"
        lines = write_sample("sample:comments-and-code", folder / "reviews")
        for split, name in (("train", "train"), ("val", "test")):
            (lines / split).mkdir()
            (lines / f"{name}.csv").rename(lines / split / f"{name}.csv")
        subprocess.run([python, SMALL_INPUTS, text, folder], check=True, stdout=subprocess.DEVNULL)
    return folder


def _summary_of_log(log: StepLog) -> str:
    process = log.sessions[0].processes[0]
    facts = process.environment.facts if process.environment else {}
    versions = ", ".join(f"{name} {version}" for name, version in facts.get("versions", {}).items())
    losses = [step.loss for step in process.steps if step.loss is not None]
    accuracy = "".join(
        f", accuracy {evaluation.metrics['accuracy']:.3f}" for evaluation in process.evaluations
    )
    return (
        f"Python {facts.get('python')}, {versions}; {log.sessions[0].world_size} processes, "
        f"{len(process.steps)} steps, loss {losses[0]:.3f} to {losses[-1]:.3f}{accuracy}"
    )


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
