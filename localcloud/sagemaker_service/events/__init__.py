"""What the service tells other services: events of jobs, and the lines of their logs."""
