"""What a command reads from this machine: suites, data, plans, and the checks that need training code."""
