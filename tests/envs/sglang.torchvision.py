"""Put before torchvision's _meta_registrations: declares the operators that its CUDA wheel lacks on a CPU."""

import torch as _torch

_operators = _torch.library.Library("torchvision", "FRAGMENT")
for _operator in ("nms", "qnms"):
    _operators.define(f"{_operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
