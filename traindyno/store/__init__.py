"""What an execution keeps: rows of the table and documents of the bucket."""
