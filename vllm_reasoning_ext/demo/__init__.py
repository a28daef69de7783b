"""Everything that only shows: a tiny model, scripted outputs, servers that serve them."""
