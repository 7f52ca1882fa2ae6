"""AWS's inference toolkit serves a trained model with the versions that an endpoint has."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.toolkit.container import ENVIRONMENTS
from tests.training.run_documents import run_document, run_training, write_reviews, write_texts
from tests.xla.xla_environment import make_environment
from traindyno.core.s3_keys import SAMPLES_FILE
from traindyno.core.serving.samples import differences, parse_samples
from traindyno.sagemaker.serving import IMAGES

pytestmark = pytest.mark.nightly
DRIVER = Path(__file__).with_name("endpoint_requests.py")
WRONG = ("[", '{"input": "text"}')


@pytest.mark.parametrize("model", ["gpt2", "albert", "bert"])
def test_the_toolkits_handler_service_answers_with_our_handler(tmp_path: Path, model: str) -> None:
    """A model of each task; what the handler refuses is told in its sentence."""
    document = run_document(model, measurement={"save_model": True, "max_steps": 3})
    write = write_reviews if model == "bert" else write_texts
    end = run_training(tmp_path, document, write(tmp_path / "data"))
    assert end.exit_code == 0, end.output
    folder = tmp_path / "model"
    samples = parse_samples(json.loads((folder / SAMPLES_FILE).read_text())).samples
    texts = [sample.inputs for sample in samples]
    bodies = [json.dumps({"inputs": given}) for given in (*texts, texts)]
    answered = subprocess.run(
        [str(make_environment(ENVIRONMENTS / "endpoint")), str(DRIVER), str(folder)],
        input=json.dumps([*bodies, *WRONG]),
        env={
            "PYTHONPATH": str(folder / "code"),
            "SAGEMAKER_PROGRAM": "inference.py",
            "SAGEMAKER_SUBMIT_DIRECTORY": str(folder / "code"),
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert answered.returncode == 0, answered.stderr
    said = json.loads(answered.stdout.splitlines()[-1])
    assert f":{said['versions']['torch'].partition('+')[0]}-" in IMAGES["cpu"]
    installed = (folder / "code/requirements.txt").read_text().strip()
    assert installed == f"transformers=={said['versions']['transformers']}"

    *served, (_, together), not_json, no_texts = said["answers"]
    assert {status for status, _ in served} == {200}
    assert not [*differences(samples, [answer for _, answer in served])]
    each_alone = [json.dumps(answer).encode() for answer in json.loads(together)]
    assert not [*differences(samples, each_alone)]
    assert not_json[0] == no_texts[0] == 500
    assert not_json[1].startswith("the request is not valid JSON: ")
    assert "has no texts; expected" in no_texts[1].splitlines()[0]
