"""Episodes of a deterministic policy, counted and filmed."""
