"""A real SGLang server on the CPU."""
