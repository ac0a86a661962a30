"""SQL: from cells of a question to a statement that a database runs."""
