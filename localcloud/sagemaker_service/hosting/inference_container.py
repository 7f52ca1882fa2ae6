"""Replaces AWS's inference container on this machine. A program of its own, in the environment of the model's image.

It loads ``code/inference.py`` of the model's folder as the container's toolkit does. Each line of its standard input is
a request, each line of its standard output an answer, so only the service that started it can ask it. What the handler
prints goes to the log. It ends with the service, or, if the model doesn't load, with the traceback.
"""

import importlib.util
import json
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any


def load_handler(model_folder: Path) -> ModuleType:
    source = model_folder / "code" / "inference.py"
    if not source.is_file():
        sys.exit(f"{source} was not found: the model's archive has no inference handler")
    sys.path.insert(0, str(source.parent))
    spec = importlib.util.spec_from_file_location("inference", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer(handler: ModuleType, model: Any, request: dict[str, str]) -> tuple[int, str]:
    try:
        data = handler.input_fn(request["body"].encode(), request["content_type"])
        made = handler.output_fn(handler.predict_fn(data, model), request["accept"])
    except ValueError as error:
        return 400, str(error)
    except Exception as error:  # noqa: BLE001 -- one request that fails must not end the container
        traceback.print_exc()
        return 500, f"{type(error).__name__}: {error}"
    return 200, made if isinstance(made, str) else made.decode()


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    folder = Path(sys.argv[1])
    handler = load_handler(folder)
    model = handler.model_fn(str(folder))
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        status, body = answer(handler, model, json.loads(line))
        print(json.dumps({"status": status, "body": body}), file=answers, flush=True)


if __name__ == "__main__":
    main()
