"""How results are shown: in words, charts, tables, files, and in a terminal."""
