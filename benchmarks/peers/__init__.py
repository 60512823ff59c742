"""Other engines on the same shapes: each in an environment of its own, each job a process."""
