"""The adapter for SGLang: its contracts, no grammar."""
