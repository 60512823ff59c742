"""What can be asked of a store: artifacts by name, lineage, what differs, how attempts went."""
