"""The conformance kit: cases, and the runner that tries each of them cut in every way."""
