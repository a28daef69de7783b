"""What runs: middleware and proxy around the translators of `wire`."""
