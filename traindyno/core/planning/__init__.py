"""What a suite may start, when: the plan, lanes and rounds, quotas and caps."""
