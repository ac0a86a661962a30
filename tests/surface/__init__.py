"""What others build on, as texts: public names, routes, commands, and the JSON of every kind of answer."""
