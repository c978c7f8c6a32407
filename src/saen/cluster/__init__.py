"""The same jobs in several processes or on a Ray cluster: executors, shards, merging."""
