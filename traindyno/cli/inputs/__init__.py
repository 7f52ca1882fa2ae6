"""What a command reads: files of this machine, the lab, and the account."""
