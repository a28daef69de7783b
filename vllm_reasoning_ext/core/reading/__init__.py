"""Reading text and token ids: plain runs and markers."""
