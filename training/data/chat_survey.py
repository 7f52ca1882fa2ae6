"""What a job will say of a dataset's conversations, found before it starts."""

import itertools
from collections.abc import Iterator
from pathlib import Path

from traindyno.core.run.workload import Workload
from traindyno.core.suite.choices import TooLong
from training.data.chat_encoding import ChatEncoder
from training.data.chat_template import choose_template, read_template, refuse_unless_template
from training.data.conversations import conversations
from training.data.prepare import load_tokenizer
from training.errors import WorkloadError
from training.process.job import JobPaths

#: So many are tokenised; the form of all is checked.
MOST_TOKENISED = 20_000


def chat_survey(
    workload: Workload,
    root: Path,
    *,
    tokenizer_folder: Path | None,
    has_tokenizer: bool,
    template: Path | None,
) -> Iterator[str]:
    """A line for each split. Raises WorkloadError for the first conversation that the job would
    refuse; without a tokenizer, for one of a wrong form, and for a file that is no template.
    """
    dataset = workload.dataset
    length = workload.sequence_length
    assert dataset is not None
    assert length is not None
    if template is not None:
        refuse_unless_template(read_template(template))
    tokenizer = None
    if has_tokenizer:
        folder = None if tokenizer_folder is None else str(tokenizer_folder)
        job = JobPaths(data_root=root, model_path=None, tokenizer_path=folder, save_folder=root)
        tokenizer = load_tokenizer(workload, job)
        choose_template(tokenizer, dataset, template)
    for split in dict.fromkeys(filter(None, (dataset.split, dataset.evaluation_split))):
        rows = conversations(dataset, root, split)
        if tokenizer is None:
            count = sum(1 for _ in rows)
            yield (
                f"split {split} has {count:,} conversations; the tokenizer is not on this machine, "
                f"so the job counts those of more than {length:,} tokens"
            )
            continue
        encoder = ChatEncoder(tokenizer, dataset, sequence_length=length, packing=False)
        remaining = sum(1 for _ in encoder.encode(itertools.islice(rows, MOST_TOKENISED)))
        others = sum(1 for _ in rows)
        if 0 < encoder.conversations == encoder.left_out:
            raise WorkloadError(
                f"none of {encoder.conversations:,} conversations of split {split} has a token of "
                "an answer; expected a chat template that writes what assistant says"
            )
        if encoder.too_long and not remaining and not others:
            raise WorkloadError(
                f"none of {encoder.conversations:,} conversations of split {split} remains: "
                f"{encoder.too_long:,} are longer than {length:,} tokens (dataset.too_long: "
                f"{dataset.too_long}); expected a larger sequence_length, or too_long: cut"
            )
        of = f"of the first {encoder.conversations:,} of {encoder.conversations + others:,}"
        which = of if others else f"of {encoder.conversations:,}"
        fate = "are cut" if dataset.too_long is TooLong.CUT else "are left out"
        empty = f"; {encoder.left_out:,} are left out, without a token of an answer"
        yield (
            f"{encoder.too_long:,} {which} conversations of split {split} are longer than "
            f"{length:,} tokens and {fate} (dataset.too_long: {dataset.too_long})"
            f"{empty if encoder.left_out else ''}"
        )
