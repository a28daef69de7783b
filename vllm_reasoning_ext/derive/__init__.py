"""A family record read from a chat template, and the choice that `auto` makes (SPEC section 8)."""
