"""Each figure, table and advice of the four posts, with what draws it here, so that none of them is
removed without a word.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import cast

import pytest

from tests.unit.report.test_report import downloads, report_of
from tests.unit.slices.test_scaling import SUITES, results_of
from tests.unit.test_ledger import POSTS, digest
from traindyno.api.suite_loading import load_suite
from traindyno.core.documents.stored import to_document
from traindyno.core.planning.cell_notes import loader_notes
from traindyno.core.verdict.comparison import ExecutionRecord
from traindyno.features import FEATURES
from traindyno.report.html import render
from traindyno.slices.claims import lab as claims

GPT2 = "gpt2-compiler"
GPTJ = "gptj-parallel"
ALBERT = "albert-scaling"
BERT = "bert-trainium"
DATA_URI = re.compile(r'href="data:[^"]*"')
WORKERS = "dataloader_num_workers"


@cache
def page_of(pack: str, name: str = "original") -> str:
    """The report of a suite with made runs, claims judged."""
    suite = load_suite(SUITES / pack / f"{name}.yaml").suite
    report = report_of(results_of(suite), suite)
    record = SimpleNamespace(suite=suite, cells=report.cells, results=report.results)
    judged = claims.claims_of(cast("ExecutionRecord", record))
    return render(replace(report, parts={claims.PART: to_document(judged)}), FEATURES)


def captions(pack: str, name: str = "original") -> set[str]:
    return set(re.findall(r"<figcaption>([^<]*)", page_of(pack, name)))


def draws(title: str, name: str = "original") -> Callable[[str], bool]:
    return lambda pack: title in captions(pack, name)


def says(sentence: str, name: str = "original") -> Callable[[str], bool]:
    return lambda pack: re.search(sentence, DATA_URI.sub("", page_of(pack, name))) is not None


def judges(*texts: str) -> Callable[[str], bool]:
    """Claims of the report's table."""
    section = re.compile(r'<section id="claims">.*?</section>', re.DOTALL)

    def is_judged(pack: str) -> bool:
        (table,) = section.findall(page_of(pack))
        return all(text in table for text in texts)

    return is_judged


def has_settings(name: str, **expected: object) -> Callable[[str], bool]:
    """A cell of the suite with these settings."""

    def is_cell(pack: str) -> bool:
        cells = load_suite(SUITES / pack / f"{name}.yaml").suite.cells
        return any(
            all(getattr(cell.settings, field) == value for field, value in expected.items())
            for cell in cells
        )

    return is_cell


def notes_loader_workers(pack: str) -> bool:
    suite = load_suite(SUITES / pack / "original.yaml").suite
    notes = " ".join(loader_notes(suite.cells))
    return "12 loader workers in each of its 8 processes" in notes


def over(column: str, axis: str) -> Callable[[str], bool]:
    """The picture's data are a line of at least two points."""
    return lambda pack: any(
        name.startswith(f"{column}-{axis}") and text.count("\n") > 2
        for name, text in downloads(page_of(pack)).items()
    )


ROWS: list[tuple[str, str, Callable[[str], bool]]] = [
    (GPT2, "Training data throughput comparison", draws("Samples per second, all devices")),
    (GPT2, "Training loss convergence comparison", draws("Training loss over steps")),
    (GPT2, "Training time comparison", draws("Mean time of a run by phase")),
    (
        GPT2,
        "Training cost (billable seconds) comparison",
        draws("Billed time of each instance, for the whole workload"),
    ),
    (
        GPT2,
        "find the corresponding maximum batch size",
        draws("Samples per second over batch size per device", "modern"),
    ),
    (
        GPT2,
        "the learning rate must be adjusted appropriately",
        says("learning_rate 6.25e-05.*learning_rate 0.000125"),
    ),
    (
        GPTJ,
        "from 58 minutes to less than 10 minutes",
        judges("An epoch took 58 minutes", "Six times faster"),
    ),
    (
        GPTJ,
        "tracing and auto partitioning with GPU as the tracing device",
        judges("Tracing and automatic partitioning"),
    ),
    (GPTJ, "Optimizer state sharding", says("shard_optimizer_state on")),
    (GPTJ, "Use FP16 precision", says("fp16|FP16|half")),
    (GPTJ, "Use tensor parallelism", has_settings("modern", strategy="tensor")),
    (ALBERT, "Train time (s)", judges("Training takes 197.8595 s on 2 nodes")),
    (ALBERT, "scaling efficiency", over("efficiency", "instances")),
    (
        ALBERT,
        "We gradually increased the data loader worker number under different training scales.",
        over("samples_per_second", WORKERS),
    ),
    (
        ALBERT,
        "the throughput and scaling efficiency went into saturation when the data loader worker "
        "number was 12",
        says("From 8 dataloader num workers on, more gains less than 2 %"),
    ),
    (
        ALBERT,
        "The following graphs show the throughput comparison with a batch size of 16 and 32.",
        over("samples_per_second", "per_device_train_batch_size"),
    ),
    (
        ALBERT,
        "The following table summarizes our throughput increase",
        judges("16 nodes, batch 32"),
    ),
    (
        ALBERT,
        "The following graphs compare throughput and scaling efficiency.",
        lambda pack: (
            over("samples_per_second", "instances")(pack) and over("efficiency", WORKERS)(pack)
        ),
    ),
    (ALBERT, "The following table summarizes our throughput speed increase.", judges("13.96")),
    (
        ALBERT,
        "setting that parameter to the vCPU number divided by the number of processes",
        notes_loader_workers,
    ),
    (
        ALBERT,
        "The larger the scale we use, the more time and money SMDDP can save.",
        says("instances on, more gains less than 2 %|More instances still gained at least 2 %"),
    ),
    (BERT, "The following table summarizes our benchmark findings.", judges("6.64", "5.44")),
    (BERT, "Trainium offers about 22% faster time to train", judges("22")),
    (BERT, "up to 50% lower cost", judges("50")),
]


@pytest.mark.parametrize(("pack", "shown", "is_drawn"), ROWS, ids=[row[1][:40] for row in ROWS])
def test_the_figures_of_a_post_are_drawn(
    pack: str, shown: str, is_drawn: Callable[[str], bool]
) -> None:
    assert is_drawn(pack), f"{pack}: nothing draws {shown!r}"


@pytest.mark.parametrize("pack", sorted({row[0] for row in ROWS}))
def test_the_rows_quote_the_post(pack: str) -> None:
    """By the digests of these quotes, each of which was found in the post word for word."""
    quotes = [shown for name, shown, _ in ROWS if name == pack]
    assert [quote for quote in quotes if digest(quote) not in POSTS[pack]["shown"]] == []
