"""The door for PostgreSQL clients, knocked at by real ones."""
