"""What a suite may start and when: the plan, lanes, packs, quotas and caps."""
