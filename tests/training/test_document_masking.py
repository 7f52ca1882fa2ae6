"""With document masking, packed texts are trained as if each was alone; models that can't do it are
refused.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from tests.training.run_documents import run_document, run_training, write_reviews
from tests.training.strategy_cases import Case, blueprint_of
from tests.training.strategy_trial import make_setup
from training.data.sequences import end_to_end
from training.errors import WorkloadError
from training.process.process_group import Topology
from training.run.document_check import refuse_unless_documents_are_apart
from training.strategies import build_strategy

pytestmark = pytest.mark.usefixtures("of_one_thread")

END = 5
DOCUMENTS = ([11, 12, 13, END], [END], [21, 22, 23, 24, 25, 26, 27, 28, 29, END], [31])
APART = ("gpt2", "llama", "mistral", "gemma3_text", "llama4_text", "mixtral")


def case_of(kind: str, *, masking: bool) -> Case:
    return Case(model=f"causal-lm/{kind}", layer_count=None, options={"document_masking": masking})


def logits_of(model: PreTrainedModel, tokens: list[int], *, masking: bool) -> torch.Tensor:
    """Returns [L, V]."""
    block = np.asarray([tokens])
    inputs = {}
    if masking:
        begins = np.cumsum([0, *map(len, DOCUMENTS)])[:-1]
        packed = end_to_end(block[0], np.asarray([len(tokens)]), documents=begins)
        inputs["position_ids"] = torch.from_numpy(packed.positions(np.asarray([0]), len(tokens)))
    with torch.no_grad():
        logits: torch.Tensor = model.eval()(input_ids=torch.from_numpy(block), **inputs).logits[0]
    return logits


def test_positions_begin_again_with_each_document() -> None:
    packed = end_to_end(np.zeros(21), np.asarray([7, 7, 7]), documents=np.asarray([0, 3, 5, 6, 15]))
    assert packed.positions(np.asarray([2, 0, 1]), 7).tolist() == [
        [0, 0, 1, 2, 3, 4, 5],
        [0, 1, 2, 0, 1, 0, 0],
        [0, 1, 2, 3, 4, 5, 6],  # within a document that began before
    ]
    assert packed.select(np.asarray([1, 2])).positions(np.asarray([1]), 3).tolist() == [[0, 0, 1]]


@pytest.mark.parametrize("kind", APART)
def test_packed_documents_have_the_logits_of_single_ones(kind: str) -> None:
    model = blueprint_of(case_of(kind, masking=True)).materialise(torch.device("cpu"))
    alone = torch.cat([logits_of(model, document, masking=False) for document in DOCUMENTS])
    packed = [token for document in DOCUMENTS for token in document]
    assert torch.allclose(logits_of(model, packed, masking=True), alone, atol=1e-5)
    joined = blueprint_of(case_of(kind, masking=False)).materialise(torch.device("cpu"))
    assert not torch.allclose(logits_of(joined, packed, masking=False), alone, atol=1e-5)


def check(*, masking: bool) -> None:
    """Does what a job does before its first step. In BLOOM a document sees the one before it."""
    case = case_of("bloom", masking=masking)
    setup = make_setup(case, Topology())
    strategy = build_strategy(setup)
    strategy.place(blueprint_of(case))
    refuse_unless_documents_are_apart(setup, strategy, 64)


def test_a_model_joining_documents_is_refused_under_masking() -> None:
    """test_families.py tries the check with every family."""
    check(masking=False)
    with pytest.raises(
        WorkloadError, match="a document sees the document before it in spite of document_masking"
    ):
        check(masking=True)


def test_a_run_trains_packed_texts_apart(tmp_path: Path) -> None:
    reviews = write_reviews(tmp_path / "reviews")
    losses = {}
    for masking in (True, False):
        (tmp_path / str(masking)).mkdir()
        settings = {"document_masking": masking}
        end = run_training(
            tmp_path / str(masking), run_document("gpt2", settings=settings), reviews
        )
        assert end.exit_code == 0, end.output
        losses[masking] = [step["loss"] for step in end.of_kind("step")]
    assert len(losses[True]) == len(losses[False]) == 10
    assert losses[True][0] != losses[False][0]
