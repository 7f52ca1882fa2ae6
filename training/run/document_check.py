"""Refuses document masking for a model that lets a document see another one, or counts positions
through.
"""

import torch

from traindyno.core.run.settings import DOCUMENT_CHECK_TOKENS
from traindyno.core.suite.choices import Precision
from training.data.batch import Batch
from training.errors import WorkloadError
from training.models.objective import IGNORED_LABEL
from training.strategies import Setup, TrainingStrategy

# The differences of a loss that are only of rounding. Another document of the same length before a
# document changes nothing; one of another length changes the order in which numbers are added.
SAME = 1e-6
SAME_IN_FP32 = 1e-5
SAME_IN_16_BITS = 1e-3


def refuse_unless_documents_are_apart(
    setup: Setup, strategy: TrainingStrategy, vocabulary_size: int
) -> None:
    """Raises WorkloadError.

    Computes the loss of one document after three others; all ranks take part.
    """
    if not setup.settings.document_masking:
        return
    # The last document is the same in all. The one before it is another text in the second batch,
    # longer in the third.
    tokens = torch.randint(
        vocabulary_size, (3, DOCUMENT_CHECK_TOKENS), generator=torch.Generator().manual_seed(0)
    )
    batches = [
        _batch(tokens[number], begin, tokens[0, :8]) for number, begin in enumerate((4, 4, 6))
    ]
    strategy.set_training(False)
    try:
        with torch.no_grad():
            scores = (strategy.score(setup.accelerator.to_device(batch)) for batch in batches)
            losses = [float(score[0]) for score in scores if score is not None]
    except (TypeError, ValueError) as error:
        raise WorkloadError(
            f"the model takes no position_ids, which document_masking needs: {error}"
        ) from error
    if len(losses) < len(batches):
        return  # another rank of the replica has the loss
    if abs(losses[1] - losses[0]) > SAME * losses[0]:
        raise WorkloadError(
            "in this model a document sees the document before it in spite of document_masking;"
            " expected document_masking false, or a model whose layers are all masked by positions"
        )
    rounding = SAME_IN_FP32 if setup.settings.precision is Precision.FP32 else SAME_IN_16_BITS
    if abs(losses[2] - losses[0]) > rounding * losses[0]:
        raise WorkloadError(
            "in this model a document's loss depends on its place in the sequence in spite of "
            "document_masking; expected document_masking false, or a model whose positions are "
            "set by position_ids"
        )


def _batch(tokens: torch.Tensor, begin: int, document: torch.Tensor) -> Batch:
    """A batch [1, L] of ``tokens`` [L], with ``document`` [N] at ``begin``.

    Only the document's labels count.
    """
    end = begin + len(document)
    row = torch.cat([tokens[:begin], document, tokens[end:]])
    labels = torch.full_like(row, IGNORED_LABEL)
    labels[begin + 1 : end] = document[1:]
    positions = torch.cat([torch.arange(begin), torch.arange(DOCUMENT_CHECK_TOKENS - begin)])
    return {"input_ids": row[None], "labels": labels[None], "position_ids": positions[None]}
