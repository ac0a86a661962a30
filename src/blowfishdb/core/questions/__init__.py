"""Questions: what can be asked, and how an answer is read."""
