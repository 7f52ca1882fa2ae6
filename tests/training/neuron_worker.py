"""Serves a model's folder as Inferentia's container does, but with XLA on the CPU: writes answers and compilations.

Run by the Python of the environment that has XLA: ``python neuron_worker.py MODEL_FOLDER SAMPLES_FILE``.
"""

import json
import sys
from pathlib import Path

from torch_xla.debug import metrics  # type: ignore[import-not-found,unused-ignore]

FOLDER, SAMPLES_FILE = Path(sys.argv[1]), sys.argv[2]
sys.path[:0] = [str(FOLDER / "code"), str(Path(__file__).with_name("neuron_stand_in"))]

import inference  # type: ignore[import-not-found,unused-ignore]  # noqa: E402


def main() -> None:
    samples = json.loads((FOLDER / SAMPLES_FILE).read_text())["samples"]
    model = inference.model_fn(str(FOLDER))
    at_start = compilations()
    answers = inference.predict([sample["inputs"] for sample in samples], {}, model)
    found = {"answers": answers, "at_start": at_start, "later": compilations() - at_start}
    sys.stdout.write(json.dumps(found) + "\n")


def compilations() -> int:
    return int(metrics.counter_value("UncachedCompile") or 0)


if __name__ == "__main__":
    main()
