"""The data: graphs, documents, nested data, hierarchies, and their compression."""
