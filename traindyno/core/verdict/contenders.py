"""Which cells a race runs again, by their first runs."""

from collections.abc import Mapping, Sequence

from traindyno.core.search.race import Racer, pick_contenders, within_of
from traindyno.core.statistics.hosts import HostPriors
from traindyno.core.verdict.cell_trials import CellTrials
from traindyno.core.verdict.quantity import Quantity
from traindyno.core.verdict.refused_cells import may_yet_win


def find_contenders(
    trials: Sequence[CellTrials],
    quantity: Quantity,
    *,
    refused: Mapping[str, str],
    priors: HostPriors,
    has_target: bool,
) -> frozenset[str]:
    """The ids of the cells. They are others if the leader is refused, or fails, in a further run.

    ``priors``: of hosts, as the first round knew them.
    """
    racers = [
        Racer(
            cell_id=each.cell.cell_id,
            job=(run := each.measured[0].run).job_id or run.run_id,
            value=values[0],
            host_deviation=priors[each.host_class].deviation,
        )
        for each in trials
        if each.measured and not each.failed and may_yet_win(refused.get(each.cell.cell_id))
        if (values := each.values(quantity))
    ]
    return frozenset(pick_contenders(racers, within=within_of(has_target=has_target)))
