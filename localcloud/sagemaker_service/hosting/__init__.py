"""Models that serve requests: endpoints, transform jobs, and the containers of both."""
