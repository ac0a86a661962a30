"""The service: prices and answers questions, publishes policies, keeps the books."""
