"""The store: any object storage, written only by exclusive create.

`layout` says where each object lies, `adapter`, `local` and `remote` talk to storage, `objects`
gives the documents types, `store` reads and writes them, `publish` holds the protocol by which an
attempt becomes an artifact, `claims` says who is working on what.
"""
