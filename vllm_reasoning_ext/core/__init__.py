"""The engine-free core: text and token ids in, events out; the standard library only."""
