"""The page of a store: documents derived from it, as static files or served on this machine.

Everything shown is derived; nothing here is a second truth. Functions from a store to JSON name
every field that they let out, and `anonymity` strikes out of the texts what names a person or a
machine.
"""
