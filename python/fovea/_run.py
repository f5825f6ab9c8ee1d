"""Plans of an engine, and running them so that Ctrl+C stops a long call and leaves the process usable."""
from __future__ import annotations

import ctypes
import signal
import threading
import weakref
from typing import Any, Callable

from . import _declarations as c
from ._call import Call
from ._library import Engine, check, error_of, lib, new_diag

_Progress = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_double)
# Calls beyond so many floating-point operations, some tens of milliseconds, are run slice by slice: between two slices Ctrl+C
# is looked for.
_LONG_FLOPS = 2e9


class EnginePlan:
    """A plan of the engine with its facts. The engine outlives it."""

    def __init__(self, engine: Engine, make: Callable[..., int], *descriptions: Any) -> None:
        handle, diag = ctypes.c_void_p(), new_diag()
        code = make(engine.handle, *[ctypes.byref(d) for d in descriptions], ctypes.byref(handle), ctypes.byref(diag))
        check(code, diag)
        self.engine, self.handle = engine, handle
        self._destroy = weakref.finalize(self, _destroy, engine, handle)
        self._destroy.atexit = False
        self.info = c.FoveaPlanInfo(struct_size=ctypes.sizeof(c.FoveaPlanInfo))
        check(lib.foveaGetPlanInfo(handle, ctypes.byref(self.info), ctypes.byref(diag)), diag)
        self._diag = diag
        self._run = c.FoveaRun(struct_size=ctypes.sizeof(c.FoveaRun), binding_count=c.FOVEA_BIND_COUNT)
        self._run_address, self._diag_address = ctypes.addressof(self._run), ctypes.addressof(diag)
        self._is_long = self.info.flops > _LONG_FLOPS and self.info.slice_count > 1

    def explain(self) -> str:
        size = lib.foveaExplainPlan(self.handle, None, 0)
        text = ctypes.create_string_buffer(size)
        lib.foveaExplainPlan(self.handle, text, size)
        return text.value.decode(errors='replace')

    def run(self, bindings: Any) -> None:
        """On memory of the host: an array of FOVEA_BIND_COUNT FoveaHostBuffer."""
        engine, run = self.engine, self._run
        with engine.lock:
            run.host = ctypes.addressof(bindings)
            if self._is_long and threading.current_thread() is threading.main_thread():
                code = self._run_interruptibly()
            else:
                code = lib.foveaRun(engine.handle, self.handle, self._run_address, None, self._diag_address)
            if code:
                raise error_of(code, self._diag)

    def _run_interruptibly(self) -> int:
        """The handler of SIGINT only takes a note while the library runs, because an exception could not pass through it;
        what was to happen happens when the library has come back."""
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler):
            return int(lib.foveaRun(self.engine.handle, self.handle, self._run_address, None, self._diag_address))
        seen: list[Any] = []
        progress = _Progress(lambda user, done: 0 if seen else 1)
        self._run.progress = ctypes.cast(progress, ctypes.c_void_p)
        signal.signal(signal.SIGINT, lambda number, frame: seen.append((number, frame)))
        try:
            code = int(lib.foveaRun(self.engine.handle, self.handle, self._run_address, None, self._diag_address))
        finally:
            self._run.progress = None
            signal.signal(signal.SIGINT, handler)
        if seen:
            handler(*seen[0])
        return code


def _destroy(engine: Engine, handle: Any) -> None:
    lib.foveaDestroyPlan(handle)  # `engine` is held until here


def plan_attention(engine: Engine, call: Call) -> EnginePlan:
    return EnginePlan(engine, lib.foveaEnginePlanAttention, call.desc)
