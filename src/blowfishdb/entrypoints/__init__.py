"""Ways in: they parse what people type and render what the service says."""
