"""Linear plans: rows, their cost, their least squares and the law of their noise."""
