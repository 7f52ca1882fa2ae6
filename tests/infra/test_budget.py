"""The monthly budget that a person may ask for."""

from tests.infra.synthesis import OTHER_LAB, as_list, lab, synthesise


def test_lab_has_no_budget_by_default() -> None:
    assert lab(target="aws").of_type("AWS::Budgets::Budget") == {}


def test_budget_notifies_the_labs_topic_before_and_when_it_is_passed() -> None:
    properties = lab(**OTHER_LAB).only("AWS::Budgets::Budget")
    budget = properties["Budget"]
    assert (budget["BudgetLimit"], budget["TimeUnit"]) == ({"Amount": 500.5, "Unit": "USD"}, "MONTHLY")
    assert budget["CostFilters"] == {"TagKeyValue": ["user:traindyno:lab$other-lab"]}
    said = properties["NotificationsWithSubscribers"]
    kinds = [(each["Notification"]["NotificationType"], each["Notification"]["Threshold"]) for each in said]
    assert kinds == [("FORECASTED", 80), ("ACTUAL", 100)]
    (topic,) = lab(**OTHER_LAB).of_type("AWS::SNS::Topic")
    for each in said:
        assert each["Subscribers"] == [{"SubscriptionType": "SNS", "Address": {"Ref": topic}}]


def test_budgets_may_publish_and_use_the_topics_key_for_this_account_only() -> None:
    template = lab(**OTHER_LAB)
    policies = [
        template.only("AWS::SNS::TopicPolicy")["PolicyDocument"],
        template.only("AWS::KMS::Key")["KeyPolicy"],
    ]
    for policy in policies:
        statements = [
            statement
            for statement in policy["Statement"]
            if isinstance(statement["Principal"], dict)
            and "budgets.amazonaws.com" in as_list(statement["Principal"].get("Service", []))
        ]
        assert statements
        for statement in statements:
            assert statement["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_budget_covers_all_of_sagemaker_by_default() -> None:
    template = synthesise(target="aws", file="budget_usd = 20", rules="on")
    assert template.rule_findings() == []
    budget = template.template("Lab").only("AWS::Budgets::Budget")["Budget"]
    assert budget["CostFilters"] == {"Service": ["Amazon SageMaker"]}


def test_the_local_cloud_has_no_budget() -> None:
    assert lab(target="local", file="budget_usd = 20").of_type("AWS::Budgets::Budget") == {}
