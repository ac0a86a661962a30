"""The REST interface: a workspace served to many people at once."""
