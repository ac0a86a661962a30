"""The store of a workspace: catalogue, ledger, chain of events, and what is kept beside them."""
