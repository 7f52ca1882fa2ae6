"""Events of jobs and endpoints, and the clients that send them to the local AWS services."""
