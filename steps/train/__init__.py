"""Training: from a pack plan and a token store to a checkpoint."""
