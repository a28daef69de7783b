"""The adapter for vLLM: its contracts, no grammar."""
