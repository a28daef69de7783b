"""Thin adapters, one engine a file: they know an engine's contract and no grammar."""
