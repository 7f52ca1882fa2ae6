"""What a command shows: tables, progress, and the texts about deployments and receipts."""
