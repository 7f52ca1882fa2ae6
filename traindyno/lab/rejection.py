"""How a function tells the state machine that a suite can't be run: with everything that is wrong, in full."""

from traindyno.core.errors import SuiteInvalid, SuiteRefused

# Step Functions takes causes of up to 32,768 characters.
CAUSE_LENGTH = 32_000


def rejection(error: SuiteInvalid | SuiteRefused) -> dict[str, dict[str, str]]:
    return {"refused": {"error": type(error).__name__, "cause": str(error)[:CAUSE_LENGTH]}}
