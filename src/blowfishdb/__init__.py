"""BlowfishDB: private answers from any relational database, under a policy."""
