"""Hosts models: endpoints, transform jobs, and the containers of both."""
