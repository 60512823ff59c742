"""What would run and why: the DAG, its digests, what a store knows of it, and the reasons."""
