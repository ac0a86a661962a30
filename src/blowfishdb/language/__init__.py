"""Language: what people write, questions and policy files, to and from values. Reads no data."""
