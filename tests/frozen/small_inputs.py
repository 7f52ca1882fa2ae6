"""Makes what the frozen scripts read in ``make frozen``: a tokenizer and a small BERT.

Runs on the frozen Python.

``python small_inputs.py TEXT_FILE FOLDER``
"""

import sys
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

VOCABULARY_SIZE = 512
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def main() -> None:
    text = Path(sys.argv[1])
    folder = Path(sys.argv[2])
    tokenizer = word_piece_tokenizer(text)
    tokenizer.save_pretrained(str(folder / "tokenizer"))
    small_bert(len(tokenizer)).save_pretrained(str(folder / "bert"))
    tokenizer.save_pretrained(str(folder / "bert"))


def word_piece_tokenizer(text: Path) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=VOCABULARY_SIZE, special_tokens=SPECIAL)
    tokenizer.train([str(text)], trainer)
    ends = [(mark, tokenizer.token_to_id(mark)) for mark in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=ends
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL))  # noqa: B905
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def small_bert(vocabulary_size: int) -> BertForSequenceClassification:
    configuration = BertConfig(
        vocab_size=vocabulary_size,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return BertForSequenceClassification(configuration)


if __name__ == "__main__":
    main()
