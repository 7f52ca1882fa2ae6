"""Runs of one shared job on the first GPU of this machine against runs of their own jobs, in
turn.
"""

from typing import Any

from bench.figures import Figure, Section, spread
from bench.gpu import NO_GPU
from bench.gpu_cases import MODELS
from bench.groups import TITLES, command
from bench.kept import Kept
from bench.pairs import Pair, measure_pair
from traindyno.core.run.record import RECORD

PAIRS = 2
STEPS = 40
ON_THE_GPU = {"CUDA_VISIBLE_DEVICES": "0", "HF_HUB_OFFLINE": "1"}
TOO_LARGE = 4096


def measure(*, is_quick: bool, kept: Kept) -> Section:
    import torch  # noqa: PLC0415  (the rest of this module serves without it)

    if not torch.cuda.is_available():
        return Section(
            title=TITLES["gpu_pairs"], command=command("gpu_pairs"), why_unmeasured=NO_GPU
        )
    cells = {
        "eager": document({}),
        "eager, half of the batch": document({"batch_size_per_device": MODELS[0].batch // 2}),
        "compiled": document({"compiler": "inductor"}),
    }
    failing = {"too large": document({"batch_size_per_device": TOO_LARGE})}

    def pair(number: int) -> Pair:
        return measure_pair(cells, number, environment=ON_THE_GPU, failing=failing)

    pairs = [
        kept.case(f"pair {number}", Pair, lambda number=number: pair(number))  # type: ignore[misc]
        for number in range(1, 2 if is_quick else PAIRS + 1)
    ]
    figures = []
    for cell in cells:
        ratios = [pair.shared[cell] / pair.separate[cell] for pair in pairs]
        figures += [
            Figure(
                name=f"{cell}: rate in a shared job ÷ rate in a job of its own",
                value=spread(ratios),
                unit="×",
            ),
            Figure(
                name=f"{cell}: from the start of its own process to its first counted step",
                value=spread([pair.start_seconds[cell] for pair in pairs]),
                unit="s",
            ),
        ]
        changes = [pair.change_seconds[cell] for pair in pairs if cell in pair.change_seconds]
        if changes:
            name = (
                f"{cell}: from the last step of the cell before, in the shared job, to its first "
                "counted step"
            )
            figures.append(Figure(name=name, value=spread(changes), unit="s"))
    note = (
        f"Device: {torch.cuda.get_device_name()}, PyTorch {torch.__version__}. {MODELS[0].name}, "
        f"{MODELS[0].length} tokens, batch {MODELS[0].batch}, bf16, {STEPS} steps a run, synthetic "
        "sequences. In each shared job a cell that does not fit ends out of memory before the "
        "last cell."
    )
    return Section(
        title=TITLES["gpu_pairs"],
        command=command("gpu_pairs"),
        figures=tuple(figures),
        notes=(note,),
    )


def document(changes: dict[str, Any]) -> dict[str, Any]:
    model = MODELS[0]
    return RECORD.mark(
        {
            "run_id": "pair",
            "workload": {
                "task": model.task,
                "examples": 1_000_000,
                "model": {"config": model.config},
                "dataset": {"format": "synthetic"},
                "sequence_length": model.length,
            },
            "settings": {
                "instance": "local.gpu",
                "strategy": "single",
                "precision": "bf16",
                "batch_size_per_device": model.batch,
                "learning_rate": {"base": 1e-4},
                **changes,
            },
            "measurement": {"max_steps": STEPS},
        }
    )
