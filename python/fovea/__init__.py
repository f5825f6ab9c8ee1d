"""Attention from arrays, on Vulkan or the CPU, and every weight of it on request.

    o = fovea.attention(q, k, v, causal=True)                    # numpy, or anything with __dlpack__; [B, H, L, D]
    o, lse = fovea.attention(q, k, v, causal=True, return_lse=True)
    print(fovea.explain(q, k, v, causal=True))                   # which kernel on which device, and why
"""
from __future__ import annotations

from . import _declarations as _c
from ._attention import Gradients, Plan, attention, explain, gradients, merge, plan
from ._library import Device, Engine, FoveaError, Refused, devices, open_engine

__version__ = f'{_c.FOVEA_VERSION_MAJOR}.{_c.FOVEA_VERSION_MINOR}.{_c.FOVEA_VERSION_PATCH}'
__all__ = ['Device', 'Engine', 'FoveaError', 'Gradients', 'Plan', 'Refused', 'attention', 'devices', 'explain', 'gradients',
           'merge', 'open_engine', 'plan']
