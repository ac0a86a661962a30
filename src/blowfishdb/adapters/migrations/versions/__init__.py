"""One script for each format; a script is never changed once it was published."""
