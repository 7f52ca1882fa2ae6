"""What a command shows: tables, texts and progress."""
