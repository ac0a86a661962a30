"""The workspace as people type on it: beside this process, or on a server."""
