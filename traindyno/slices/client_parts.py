"""The commands in the order of the help; the errors of slices for input that is refused."""

from collections.abc import Callable, Mapping, Sequence

from traindyno.api.model_check import ConfigurationUnreachable
from traindyno.cli.commands import execution_commands, run_commands, serving_commands
from traindyno.cli.commands.compare_command import compare
from traindyno.cli.commands.doctor_command import doctor
from traindyno.cli.commands.judge_command import judge
from traindyno.cli.commands.plan_command import plan
from traindyno.core.errors import TraindynoError
from traindyno.core.serving.deployment import ModelNotServable
from traindyno.slices.claims import client as claims
from traindyno.slices.estimates import client as estimates
from traindyno.slices.estimates.first_suite import NothingFits, NothingKnown
from traindyno.slices.imported import client as imported
from traindyno.slices.imported.job import JobNotImportable
from traindyno.slices.pricing import client as pricing
from traindyno.slices.training import client as training

# Name → the command, and the example of its help.
COMMANDS: Mapping[str, tuple[Callable[..., None], str]] = {
    "init": (estimates.init, "--task causal-lm --model ./model --data ./texts --max-usd 20"),
    "plan": (plan, "suites/quickstart.yaml --local"),
    "run": (run_commands.run, "suites/quickstart.yaml --local --name first"),
    "watch": (run_commands.watch, "first --local"),
    "stop": (execution_commands.stop, "first --local"),
    "list": (execution_commands.list_executions, "--local --limit 5"),
    "report": (run_commands.report, "first --local --output reports"),
    "reprice": (pricing.reprice_execution, "first --region eu-west-1"),
    "compare": (compare, "before after --tolerance 3% --local"),
    "judge": (judge, "trials.csv --value seconds --cell config --host node"),
    "claims": (claims.claims, "suites/bert-trainium/claims.yaml first --local"),
    "import": (
        imported.import_job,
        "my-training-2026-11-20 --examples 1000000 --output suite.yaml",
    ),
    "train": (training.train, "first --max-usd 500 --spot"),
    "deploy": (serving_commands.deploy, "first --instance ml.g5.xlarge --hours 8"),
    "endpoints": (serving_commands.endpoints, "--format json"),
    "undeploy": (serving_commands.undeploy, "traindyno--reviews-c0123abcd-4f2a9c"),
    "doctor": (doctor, "--aws --region us-east-1"),
}
run_commands.FOLLOWERS[:] = [
    training.watch_training,
]
run_commands.LEAVERS[:] = [
    training.leave_trained_model,
]
REFUSALS: Sequence[type[TraindynoError]] = [
    ModelNotServable,
    JobNotImportable,
    NothingFits,
    NothingKnown,
    ConfigurationUnreachable,
]
