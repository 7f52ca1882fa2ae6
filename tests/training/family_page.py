"""docs/models.md: what the sweep over the families of transformers found. Run as a module, it writes the page and the
families' section of docs/strategies.md anew.
"""

import os
from collections.abc import Mapping
from multiprocessing import get_context
from pathlib import Path

import transformers

from tests.training.family_strategies import all_strategies, outcomes, write_section
from tests.training.family_sweep import Compared, compare
from tests.training.small_models import FAMILIES

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
NAMES = sorted(f"{task}/{kind}" for task, kinds in FAMILIES.items() for kind in kinds)


def version_line() -> str:
    return f"These tables are of transformers {transformers.__version__}, the version that the images have."


def row(name: str, found: Compared) -> str:
    task, _, kind = name.partition("/")
    flops = "counted" if found.flops_are_known else "unknown"
    if found.refused or found.unknown:
        reason = f"refused: {found.refused}" if found.refused else f"unknown: {found.unknown}"
        return f"| {kind} | {task} | {escaped(reason)} | | | | |"
    masking = {True: "yes", False: "refused", None: ""}[found.masks_documents]
    cells = (escaped(found.packed), escaped(found.padded), escaped(found.stages), masking, flops)
    return f"| {kind} | {task} | {' | '.join(cells)} |"


def escaped(text: str | None) -> str:
    return (text or "unknown").replace("|", "\\|").replace("<", "&lt;")


def page(found: Mapping[str, Compared]) -> str:
    compared = [each for each in found.values() if each.packed]
    cut = sum(each.stages == "equal" for each in compared)
    equal = sum(each.packed == each.padded == "equal" for each in compared)
    return "\n".join(
        [
            "# Models",
            "",
            "A suite's `workload.model` names a model of transformers, by a path or by a configuration. The built-in"
            " tasks train it as transformers does: same attention, same loss, with packed rows and with padded ones.",
            "",
            version_line(),
            "",
            "## Every family",
            "",
            f"Of {len(found)} pairs of task and model type, {len(compared)} run with a small configuration. {equal} of"
            f" these are equal with packed and with padded rows. A pipeline can cut {cut}.",
            "",
            "- *equal*: the logits, and the losses of ten training steps in one process, are those of transformers' own"
            " model with the same weights. Windows of attention are shorter than the rows.",
            "- *refused*: the suite's check or the job refuses this configuration, with this reason.",
            "- *unknown*: transformers' own model does not run with the small configuration, so there is no comparison."
            " A full configuration may train.",
            "- Pipeline: *equal* if two stages have the logits of the whole model. A model that does more between its"
            " blocks than pass hidden states on is *refused* by the job, with the reason.",
            "- Document masking *refused*: a job with `document_masking` ends before its first step, because a text"
            " would still see the text before it, or its positions would not begin at 0.",
            "- FLOPs *unknown*: they can't be counted without the values of the data. The report then shows no FLOPs"
            " and no MFU.",
            "",
            "| model type | task | packed rows | padded rows | pipeline | document masking | FLOPs |",
            "|---|---|---|---|---|---|---|",
            *(row(name, each) for name, each in found.items()),
            "",
            "`make chaos` trains all of them. [strategies.md](strategies.md#families-of-models) has 26 of them under"
            " every strategy. `python -m tests.training.family_page` writes this page.",
            "",
        ]
    )


def main() -> None:
    with get_context("spawn").Pool(min(os.cpu_count() or 1, 8)) as pool:
        found = dict(zip(NAMES, pool.map(compare, NAMES, chunksize=1), strict=True))
    PAGE.write_text(page(found))
    write_section(outcomes(all_strategies()))


if __name__ == "__main__":
    main()
