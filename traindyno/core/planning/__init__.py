"""What a suite may start and when: the plan, lanes, waves, quotas and caps."""
