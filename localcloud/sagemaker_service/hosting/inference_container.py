"""Replaces AWS's inference container on this machine.

A program of its own, in the environment of the model's image.

It loads ``code/inference.py`` of the model's folder as the container's toolkit does. Each line of
its standard input is a request, each line of its standard output an answer, so only the service
that started it can ask it. What the handler prints goes to the log. It ends with the service, or,
if the model doesn't load, with the traceback.
"""

import json
import os
import runpy
import sys
import traceback
from typing import Any


def answer(handler: dict[str, Any], model: Any, body: bytes) -> tuple[int, str]:
    try:
        data = handler["input_fn"](body, "application/json")
        return 200, handler["output_fn"](handler["predict_fn"](data, model), "application/json")
    except ValueError as error:
        return 400, str(error)
    except Exception as error:  # noqa: BLE001 -- one request that fails must not end the container
        traceback.print_exc()
        return 500, f"{type(error).__name__}: {error}"


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    handler = runpy.run_path(f"{sys.argv[1]}/code/inference.py")
    model = handler["model_fn"](sys.argv[1])
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        print(
            json.dumps(answer(handler, model, json.loads(line).encode())), file=answers, flush=True
        )


if __name__ == "__main__":
    main()
