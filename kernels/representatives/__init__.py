"""Representatives: which documents stay, so that every other one resembles one that stays.

Documents come in keep order, best first, with their shingle sets and the buckets they share with
others. In that order a document is compared with those that stay in its buckets; at the first
Jaccard of at least the threshold it is removed in favour of that one, else it stays.

Deciding in rounds, each document against the best one left in its buckets until nothing changes,
ends in the same answer; keep order needs one pass.

Transitive closure ("connected components") removes documents that resemble nothing that stays: A
resembles B, B resembles C, and only A is kept. Here each removed document was compared with the
very one that stands for it.
"""
