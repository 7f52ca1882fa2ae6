"""One measurement at several prices."""
