"""Attention from arrays, on Vulkan or the CPU, and every weight of it on request.

    o, lse = fovea.attention(q, k, v, causal=True, return_lse=True)   # numpy, or anything with __dlpack__; [B, H, L, D]
    look = fovea.inspect(q, k, v, lse=lse, causal=True)               # weights without the matrix
    look.weights(rows=7, keys=slice(0, 8), head=1), look.key_mass(last=32), look.top(5)
    fovea.map(q, k, lse, causal=True)                                 # shows itself in a notebook
    print(fovea.explain(q, k, v, causal=True))                        # which kernel on which device, and why
    fovea.model('x.gguf').run('The cat sat', keep=['weights:3.1'])    # a published model, without PyTorch
"""
from __future__ import annotations

from . import _declarations as _c
from ._attention import Gradients, Plan, attention, explain, gradients, merge, plan
from ._inspection import Inspection, RowStats, inspect
from ._library import Device, Engine, FoveaError, Refused, devices, open_engine
from ._map import Map, map
from ._model import head_directions, logit_writers, score_writers
from ._notebook import Lesson, LessonTable, View, lesson, lessons, view
from ._opened_model import Generation, Model, Run, Token, model

__version__ = f'{_c.FOVEA_VERSION_MAJOR}.{_c.FOVEA_VERSION_MINOR}.{_c.FOVEA_VERSION_PATCH}'
__all__ = ['Device', 'Engine', 'FoveaError', 'Generation', 'Gradients', 'Inspection', 'Lesson', 'LessonTable', 'Map', 'Model', 'Plan',
           'Refused', 'RowStats', 'Run', 'Token', 'View', 'attention', 'devices', 'explain', 'gradients', 'head_directions', 'inspect',
           'lesson', 'lessons', 'logit_writers', 'map', 'merge', 'model', 'open_engine', 'plan', 'score_writers', 'view']
