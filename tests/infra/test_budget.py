"""The monthly budget that a person may ask for."""

from aws_cdk.assertions import Match

from tests.infra.synthesis import OTHER_LAB, lab, only, properties, synthesise

BUDGET = "AWS::Budgets::Budget"


def test_lab_has_no_budget_by_default_and_the_local_cloud_has_none() -> None:
    lab(target="aws").resource_count_is(BUDGET, 0)
    lab(target="local", file="budget_usd = 20").resource_count_is(BUDGET, 0)


def test_budget_notifies_the_labs_topic_before_and_when_it_is_passed() -> None:
    template = lab(**OTHER_LAB)
    subscribers = [{"SubscriptionType": "SNS", "Address": {"Ref": only(template, "AWS::SNS::Topic")}}]
    kinds = (("FORECASTED", 80), ("ACTUAL", 100))
    budget = {
        "BudgetLimit": {"Amount": 500.5, "Unit": "USD"},
        "TimeUnit": "MONTHLY",
        "CostFilters": {"TagKeyValue": ["user:traindyno:lab$other-lab"]},
    }
    notifications = [
        {
            "Notification": Match.object_like({"NotificationType": kind, "Threshold": percent}),
            "Subscribers": subscribers,
        }
        for kind, percent in kinds
    ]
    template.has_resource_properties(BUDGET, {"Budget": budget, "NotificationsWithSubscribers": notifications})


def test_budgets_may_publish_and_use_the_topics_key_for_this_account_only() -> None:
    here = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    for kind, name in (("AWS::SNS::TopicPolicy", "PolicyDocument"), ("AWS::KMS::Key", "KeyPolicy")):
        (policy,) = [each[name] for each in properties(lab(**OTHER_LAB), kind).values()]
        found = [each for each in policy["Statement"] if "budgets.amazonaws.com" in str(each["Principal"])]
        assert found
        assert all(each["Condition"] == here for each in found)


def test_budget_covers_all_of_sagemaker_by_default() -> None:
    assembly = synthesise(target="aws", file="budget_usd = 20", rules="on")
    assert assembly.rule_findings() == []
    filters = {"CostFilters": {"Service": ["Amazon SageMaker"]}}
    assembly.template("Lab").has_resource_properties(BUDGET, {"Budget": filters})
