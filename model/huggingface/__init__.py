"""The plain MoE families of Hugging Face transformers, in both directions.

`families` is the table of what they call things, `config` translates configs, `checkpoint` moves
tensors. transformers itself is not needed; tests compare with it.
"""
