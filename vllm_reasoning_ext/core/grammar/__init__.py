"""The grammars: runs of text and markers in, events out."""
