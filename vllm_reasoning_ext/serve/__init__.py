"""What runs: middleware and proxy around the wire translators, and the demo."""
