"""What `traindyno run` says when it has started an execution."""

from tests.unit.suites import small_suite
from traindyno.cli.commands.run_commands import start_lines


def test_a_suite_without_models_to_deploy_is_told_so_at_its_start() -> None:
    assert list(start_lines(small_suite(), "mine", " --local")) == [
        "started mine; stop it with: traindyno stop mine --local",
        "this execution will have no model to deploy: the suite keeps no model; add to it measurement: {save_model:"
        " true}, then run it again",
    ]
    saved = small_suite(measurement={"save_model": True})
    assert list(start_lines(saved, "mine", "")) == ["started mine; stop it with: traindyno stop mine"]
