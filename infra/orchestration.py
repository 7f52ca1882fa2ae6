"""The state machine that runs a suite: from its document to the verdict."""

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from infra.functions import Functions
from infra.lab_settings import FixedConcurrency
from infra.retries import THROTTLING_TRIES, retry_next_attempts
from infra.state_machines import answered_step, make_machine, state_machine_role, waiting_step
from infra.storage import Storage
from traindyno.core.errors import StartLater
from traindyno.core.lab_names import state_machine_name

GIVE_UP_AFTER = cdk.Duration.days(28)


class Orchestration(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        lab: str,
        functions: Functions,
        storage: Storage,
        concurrency: FixedConcurrency | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._functions = functions
        self._lanes = RunLanes(self, "Lanes", functions=functions, results=storage.results, concurrency=concurrency)
        role = state_machine_role(self, "Role", functions=functions, storage=storage)
        self.state_machine = make_machine(
            self, name=state_machine_name(lab), definition=self._definition(), role=role, timeout=GIVE_UP_AFTER
        )
        # The CDK adds a grant for children, which the role above already holds under the machine's fixed name.
        self.state_machine.node.try_remove_child("DistributedMapPolicy")

    def _definition(self) -> sfn.IChainable:
        plan_suite = answered_step(
            self,
            "PlanSuite",
            self._functions.plan_suite,
            payload={"execution_id": sfn.JsonPath.string_at("$$.Execution.Name"), "suite": sfn.JsonPath.entire_payload},
        )
        check_quotas = answered_step(self, "CheckQuotas", self._functions.check_quotas)
        plan_round = answered_step(self, "PlanRound", self._functions.plan_round)
        judge_suite = answered_step(self, "JudgeSuite", self._functions.judge_suite)
        reject = self._rejection()
        planned = self._choice("Planned", refused=reject, accepted=check_quotas)
        prepare = PrepareData(self, "Preparation", functions=self._functions).state
        allowed = self._choice("Allowed", refused=reject, accepted=plan_round)
        allowed.when(sfn.Condition.is_present("$.preparations"), prepare.next(plan_round))
        more = sfn.Choice(self, "RunsLeft", state_name="RunsLeft")
        more.when(sfn.Condition.is_present("$.lanes[0]"), self._lanes.state.next(plan_round))
        more.otherwise(judge_suite)
        plan_suite.next(planned)
        check_quotas.next(allowed)
        plan_round.next(more)
        return plan_suite

    def _choice(self, name: str, *, refused: sfn.IChainable, accepted: sfn.IChainable) -> sfn.Choice:
        choice = sfn.Choice(self, name, state_name=name)
        return choice.when(sfn.Condition.is_present("$.refused"), refused).otherwise(accepted)

    def _rejection(self) -> sfn.Fail:
        # Handlers answer with a refusal, because a raised error would arrive as JSON text with a traceback.
        return sfn.Fail(
            self,
            "SuiteRejected",
            state_name="SuiteRejected",
            error_path=sfn.JsonPath.string_at("$.refused.error"),
            cause_path=sfn.JsonPath.string_at("$.refused.cause"),
        )


class PrepareData(Construct):
    """One job for each set of tokens, one after another. If a job fails, the execution fails with the job's message."""

    def __init__(self, scope: Construct, construct_id: str, *, functions: Functions) -> None:
        super().__init__(scope, construct_id)
        self.state = sfn.Map(
            self,
            "PrepareData",
            state_name="PrepareData",
            items_path="$.preparations",
            max_concurrency=1,
            result_path=sfn.JsonPath.DISCARD,
        )
        self.state.item_processor(submit_task(self, "SubmitPreparation", functions))


class RunLanes(Construct):
    """A Map over lanes, in each a Distributed Map over the runs and shared jobs in S3.

    A ``concurrency`` replaces that of the plan.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        functions: Functions,
        results: s3.IBucket,
        concurrency: FixedConcurrency | None,
    ) -> None:
        super().__init__(scope, construct_id)
        submit = submit_task(self, "SubmitRun", functions)
        # A call that is cut off has recorded some runs of its job; the next one does the rest.
        record = answered_step(self, "RecordRun", functions.record_run, fault_tries=THROTTLING_TRIES)
        # A failure takes the place of the job's end, so that both reach the runs in one field. A run that can't be
        # recorded fails the child execution; the verdict names it.
        submit.add_catch(record, errors=["States.ALL"], result_path="$.end")
        runs = sfn.DistributedMap(
            self,
            "RunLane",
            state_name="RunLane",
            label="RunLane",
            item_reader=sfn.S3JsonItemReader(bucket=results, key=sfn.JsonPath.string_at("$.items_key")),
            max_concurrency=concurrency.runs if concurrency else None,
            max_concurrency_path=None if concurrency else "$.concurrency",
            tolerated_failure_percentage=100,
            map_execution_type=sfn.StateMachineType.STANDARD,
            result_path=sfn.JsonPath.DISCARD,
        )
        runs.item_processor(submit.next(record))
        self.state = sfn.Map(
            self,
            "RunLanes",
            state_name="RunLanes",
            items_path="$.lanes",
            max_concurrency=concurrency.lanes if concurrency else None,
            max_concurrency_path=None if concurrency else "$.lanes_at_once",
            result_path=sfn.JsonPath.DISCARD,
        )
        self.state.item_processor(self._one_after_another(runs))

    def _one_after_another(self, runs: sfn.DistributedMap) -> sfn.Map:
        """The waves of a lane: each uses all instances that the lane may have."""
        waves = sfn.Map(
            self,
            "RunWaves",
            state_name="RunWaves",
            items_path="$.packs",
            max_concurrency=1,
            result_path=sfn.JsonPath.DISCARD,
        )
        return waves.item_processor(runs)


def submit_task(scope: Construct, name: str, functions: Functions) -> tasks.LambdaInvoke:
    """Submits a job and waits for its task token, which FinishRun answers when the job ends.

    The item says what the job is for, in its field ``run``, ``job`` or ``preparation``.
    """
    submit = waiting_step(
        scope,
        name,
        functions.submit_run,
        payload={"item": sfn.JsonPath.entire_payload},
        result_path="$.end",
        timeout=sfn.Timeout.at("$.timeout_seconds"),
    )
    retry_next_attempts(submit)
    # The job's start slot is JSON text in the error's cause: only JSONata reads it.
    slot = sfn.WaitTime.timestamp("{% $parse($states.input.later.Cause).at %}")
    later = sfn.Wait.jsonata(scope, f"{name}Later", state_name=f"{name}Later", time=slot)
    submit.add_catch(later.next(submit), errors=[StartLater.__name__], result_path="$.later")
    return submit
