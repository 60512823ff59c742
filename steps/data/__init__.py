"""From a source to packed sequences: download, deduplicate, split, tokenize, pack.

Every step here accounts for what goes in and what comes out (`steps.data.ledger`).
"""
