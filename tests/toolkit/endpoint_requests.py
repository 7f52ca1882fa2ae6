"""Runs in an endpoint's environment: AWS's inference toolkit answers the bodies of standard input
with the handler of a model's folder, as its model server would call it.
"""

import json
import sys
from types import SimpleNamespace

import torch
import transformers
from sagemaker_pytorch_serving_container.handler_service import HandlerService


class Context(SimpleNamespace):
    """What the model server gives the service of a request."""

    def set_response_status(self, code: int, phrase: str) -> None:
        self.status = code

    def set_response_content_type(self, _: int, content_type: str) -> None:
        self.content_type = content_type


def context_of(folder: str) -> Context:
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    processor = SimpleNamespace(get_request_properties=lambda: headers)
    return Context(
        system_properties={"model_dir": folder},
        request_processor=[processor],
        status=200,
        content_type=None,
    )


def main(folder: str) -> None:
    service = HandlerService()
    service.initialize(context_of(folder))
    answers = []
    for body in json.load(sys.stdin):
        context = context_of(folder)
        (answer,) = service.handle([{"body": body.encode()}], context)
        answers.append([context.status, answer])
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    json.dump({"answers": answers, "versions": versions}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
