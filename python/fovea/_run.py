"""Plans of an engine, and running them so that Ctrl+C stops a long call and leaves the process usable."""
from __future__ import annotations

import ctypes
import signal
import threading
import weakref
from typing import Any, Callable

from . import _declarations as c
from ._call import Call
from ._library import Engine, Refused, check, error_of, lib, new_diag

_Progress = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_double)
# Calls beyond so many floating-point operations, some tens of milliseconds, are run slice by slice: between two slices Ctrl+C
# is looked for.
_LONG_FLOPS = 2e9


class EnginePlan:
    """A plan of the engine with its properties. The engine outlives it."""

    def __init__(self, engine: Engine, make: Callable[..., int], *descriptions: Any) -> None:
        self.engine, self._make, self._descriptions = engine, make, descriptions
        diag = self._diag = new_diag()
        handle = self._plan()
        self.info = c.FoveaPlanInfo(struct_size=ctypes.sizeof(c.FoveaPlanInfo))
        check(lib.foveaGetPlanInfo(handle, ctypes.byref(self.info), ctypes.byref(diag)), diag)
        self._run = c.FoveaRun(struct_size=ctypes.sizeof(c.FoveaRun), binding_count=c.FOVEA_BIND_COUNT)
        self._run_address, self._diag_address = ctypes.addressof(self._run), ctypes.addressof(diag)
        self._is_long = self.info.flops > _LONG_FLOPS and self.info.slice_count > 1

    def _plan(self) -> ctypes.c_void_p:
        self.handle, self._opened = ctypes.c_void_p(), self.engine.handle
        code = self._make(lib.foveaEngineProperties(self._opened), *[ctypes.byref(d) for d in self._descriptions], None,
                          ctypes.byref(self.handle), ctypes.byref(self._diag))
        check(code, self._diag)
        weakref.finalize(self, _destroy, self.engine, self._opened, self.handle).atexit = False
        return self.handle

    def explain(self) -> str:
        size = lib.foveaExplainPlan(self.handle, None, 0)
        text = ctypes.create_string_buffer(size)
        lib.foveaExplainPlan(self.handle, text, size)
        return text.value.decode(errors='replace')

    def run(self, bindings: Any) -> None:
        """On memory of the host: an array of FOVEA_BIND_COUNT FoveaHostBuffer."""
        self.exclusively(self.run_bound, bindings)

    def exclusively(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Calls `work` while nobody else uses the engine. Signal handlers and finalizers run in the middle of a thread's call, where
        the lock, which lets a thread in twice, would not stop them."""
        engine = self.engine
        with engine.lock:
            if engine.is_running:
                raise Refused('device is in the middle of a call of this thread; a signal handler or finalizer can only compute on '
                              'another engine (fovea.open_engine)', 'device')
            try:
                engine.is_running = True
                return work(*arguments)
            finally:
                engine.is_running = False

    def run_bound(self, bindings: Any) -> None:
        """run() for callers that have the engine exclusively."""
        engine, run = self.engine, self._run
        if engine.handle is not self._opened:  # in a forked child
            self._plan()
        run.host = ctypes.addressof(bindings)
        if self._is_long and threading.current_thread() is threading.main_thread():
            code = self._run_interruptibly()
        else:
            code = lib.foveaRun(self._opened, self.handle, self._run_address, None, self._diag_address)
        if code:
            raise error_of(code, self._diag)

    def _run_interruptibly(self) -> int:
        """The handler of SIGINT only takes a note while the library runs, because an exception could not pass through it;
        what was to happen happens when the library has come back."""
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler):
            return int(lib.foveaRun(self._opened, self.handle, self._run_address, None, self._diag_address))
        seen: list[Any] = []
        progress = _Progress(lambda user, done: 0 if seen else 1)
        self._run.progress = ctypes.cast(progress, ctypes.c_void_p)
        signal.signal(signal.SIGINT, lambda number, frame: seen.append((number, frame)))
        try:
            code = int(lib.foveaRun(self._opened, self.handle, self._run_address, None, self._diag_address))
        finally:
            self._run.progress = None
            signal.signal(signal.SIGINT, handler)
        if seen:
            handler(*seen[0])
        return code


def _destroy(engine: Engine, opened: Any, handle: Any) -> None:
    if engine.opened is opened:  # not a forked child; `engine` is held until here
        lib.foveaDestroyPlan(handle)


def plan_attention(engine: Engine, call: Call) -> EnginePlan:
    return EnginePlan(engine, lib.foveaPlanAttention, call.desc)
