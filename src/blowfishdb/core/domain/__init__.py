"""Domain: columns and their values, bins, and conditions on them."""
