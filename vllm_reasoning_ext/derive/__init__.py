"""A family record read from a chat template, and the choice that `auto` makes (SPEC section 8)."""

from vllm_reasoning_ext.derive.choice import Choice, choose
from vllm_reasoning_ext.derive.derivation import Derivation, derive, derive_family
from vllm_reasoning_ext.derive.record_file import from_json, read_record, to_json, to_python

__all__ = [
    "Choice",
    "Derivation",
    "choose",
    "derive",
    "derive_family",
    "from_json",
    "read_record",
    "to_json",
    "to_python",
]
