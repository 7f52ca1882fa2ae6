"""A script that resumes from its checkpoints, whose losses are known."""

EVERY = 10
SCRIPT = f"""
import json, os, pathlib, sys, time
from traindyno.callbacks import checkpoints, step_log

given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
folder = pathlib.Path(checkpoints.checkpoint_folder())
newest = checkpoints.newest_complete(folder)
state = {{"step": 0, "value": 1.0}}
if newest:
    state = json.loads(pathlib.Path(newest, "state.json").read_text())
step_log.resume(state["step"])
for number in range(state["step"] + 1, int(given["--steps"]) + 1):
    with step_log.step(samples=8) as step:
        time.sleep(float(given["--delay"]))
        state = {{"step": number, "value": state["value"] * 0.99 + 0.001 * (number % 7)}}
        step.loss = state["value"]
    if number % {EVERY} == 0:
        slot = folder / f"slot-{{number // {EVERY} % 3}}"
        with step_log.checkpoint(slot):
            slot.mkdir(parents=True, exist_ok=True)
            (slot / "state.json").write_text(json.dumps(state))
            checkpoints.mark_complete(slot)
pathlib.Path(os.environ["SM_MODEL_DIR"], "model.json").write_text(json.dumps(state))
"""


def losses_of_script(steps: int) -> list[tuple[int, float]]:
    """Of each step without interruptions."""
    points = []
    value = 1.0
    for step in range(1, steps + 1):
        value = value * 0.99 + 0.001 * (step % 7)
        points.append((step, value))
    return points
