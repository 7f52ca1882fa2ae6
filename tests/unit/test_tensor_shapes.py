"""Functions that take or give tensors say their shapes; a test in tests/training compares these
with real tensors.
"""

from tests import tensor_shapes


def test_each_function_with_tensors_says_their_shapes() -> None:
    functions = tensor_shapes.functions()
    assert len(functions) > 100
    assert [f"{each.file.stem}: {each.name}" for each in functions if not each.says_shapes] == []


def test_the_letters_of_shapes_are_in_the_legend() -> None:
    said = {
        (each.name, letter)
        for each in tensor_shapes.functions()
        for letter in tensor_shapes.letters_of(each.own_text)
    }
    assert len({letter for _, letter in said}) > 5
    assert {
        (name, letter) for name, letter in said if letter not in tensor_shapes.legend()
    } == set()
