"""Suites that the tests share."""

from dataclasses import replace
from typing import Any

from traindyno.core.errors import SuiteInvalid
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.suite import Suite
from traindyno.features import FEATURES

# As traindyno run packs and names it.
STAGED_SOURCE = f"s3://bucket/code/{'ab' * 32}/sourcedir.tar.gz"


def says(problem: str, path_and_words: str) -> bool:
    """Whether the problem is at this path, and its message holds these words."""
    path, _, words = path_and_words.partition(": ")
    return problem.startswith(f"{path}: ") and words in problem


def problems(document: Any) -> list[str]:
    """What a suite is refused for; nothing if it is accepted."""
    try:
        parse_suite(document, FEATURES)
    except SuiteInvalid as error:
        return [str(problem) for problem in error.problems]
    return []


def with_staged_source(suite: Suite) -> Suite:
    """The suite that ``traindyno run`` sends: a script's folder is a tarball in S3."""
    is_script = suite.workload.source is not None
    return (
        replace(suite, workload=replace(suite.workload, source=STAGED_SOURCE))
        if is_script
        else suite
    )


def small_document(**changes: Any) -> dict[str, Any]:
    """A valid suite of two cells; ``changes`` replace whole sections."""
    return {
        "name": "quick-look",
        "goal": "cheapest",
        "workload": {
            "task": "causal-lm",
            "model": {"config": {"model_type": "gpt2", "n_layer": 2}},
            "tokenizer": {"train_vocabulary_size": 2000},
            "dataset": {"path": "s3://bucket/data/abc/"},
            "sequence_length": 128,
            "examples": 10000,
        },
        "training": {"instance": "ml.g5.xlarge", "precision": "bf16"},
        "baseline": {"compiler": "none"},
        "matrix": {"compiler": ["none", "inductor"]},
        "measurement": {"trials": 2},
        "search": "grid",
        "limits": {"max_usd": 50, "max_hours": 4, "max_job_seconds": 1800},
        **changes,
    }


def unprepared_document(**changes: Any) -> dict[str, Any]:
    """The same suite on synthetic data, which no job has to prepare."""
    workload = {**small_document()["workload"], "dataset": {"format": "synthetic"}}
    return small_document(**{"workload": workload, **changes})


def unprepared_suite(**changes: Any) -> Suite:
    return parse_suite(unprepared_document(**changes))


def small_suite(**changes: Any) -> Suite:
    return parse_suite(small_document(**changes))


def script_document(**changes: Any) -> dict[str, Any]:
    """A valid suite of one user's own script."""
    return small_document(
        **{
            "workload": {
                "task": "script",
                "source": STAGED_SOURCE,
                "entry_point": "train.py",
                "hyperparameters": {"model": "gpt2", "epochs": 1, "lr": 5e-05, "bf16": True},
                "examples": 1000,
            },
            "training": {},
            "baseline": {},
            "matrix": {"instance": ["ml.g5.xlarge"]},
            **changes,
        }
    )
