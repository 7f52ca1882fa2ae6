"""The stored data of executions: rows of the table and documents of the bucket."""
