"""Messages: values that travel between whoever asks and whoever answers. They know no service."""
