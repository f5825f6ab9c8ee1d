"""Loads the package's library, libfovea_runtime.so, and turns its errors into Python's."""
from __future__ import annotations

import ctypes
import functools
import numbers
import os
import sys
import threading
import weakref
from typing import Any, NamedTuple

from . import _declarations as c

_NAMES = {'linux': 'libfovea_runtime.so', 'darwin': 'libfovea_runtime.dylib'}


def _load() -> Any:
    path = os.path.join(os.path.dirname(__file__), _NAMES.get(sys.platform, 'libfovea_runtime.so'))
    loaded = ctypes.CDLL(path)
    for name, (result, arguments) in c.FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    found = loaded.foveaAbiVersion()
    if found != c.FOVEA_ABI_VERSION:
        raise ImportError(f'{path} has ABI version {found}; it must be {c.FOVEA_ABI_VERSION}, as this package was built for it')
    return loaded


lib = _load()


class FoveaError(RuntimeError):
    """A device, driver, file or memory failed. `code` is the number of FoveaResult, `field` what was wrong."""

    def __init__(self, text: str, code: int, field: str) -> None:
        super().__init__(text)
        self.code, self.field = code, field

    def __reduce__(self) -> tuple[Any, ...]:  # a worker process hands its exceptions over by pickle
        return type(self), (str(self), self.code, self.field)


class Refused(ValueError):
    """A call that was rejected before anything was written: the line names the field, its value and the limit."""

    def __init__(self, text: str, field: str) -> None:
        super().__init__(text)
        self.field = field

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.field)


def whole(name: str, value: Any, least: int, most: int) -> int:
    """An integer of the caller's, from `least` to `most`."""
    if type(value) is not int and (isinstance(value, bool) or not isinstance(value, numbers.Integral)):
        raise Refused(f'{name} is {value!r}; it must be an integer', name)
    number = int(value)
    if not least <= number <= most:
        raise Refused(f'{name} is {number}; it must be {least} to {most}', name)
    return number


@functools.lru_cache(maxsize=None)
def _limits(struct: Any, field: str) -> tuple[int, int]:
    kind = next(member[1] for member in struct._fields_ if member[0] == field)
    bits = 8 * ctypes.sizeof(kind)
    return (-1 << bits - 1, (1 << bits - 1) - 1) if kind(-1).value < 0 else (0, (1 << bits) - 1)


def put(struct: ctypes.Structure, field: str, value: Any, name: str = '') -> None:
    """Sets a field to an integer of the caller's, which ctypes would cut to the field's bits. All such fields are set here."""
    setattr(struct, field, whole(name or field, value, *_limits(type(struct), field)))


def c_text(name: str, value: str) -> bytes:
    """A text for a `const char*`, which a 0 would end."""
    if '\0' in value:
        raise Refused(f'{name} is {value!r}; it must not contain the character U+0000', name)
    return value.encode()


_REFUSALS = (c.FOVEA_INVALID_ARGUMENT, c.FOVEA_UNSUPPORTED, c.FOVEA_LIMIT_EXCEEDED, c.FOVEA_SIZE_OVERFLOW)
_MEMORY = (c.FOVEA_OUT_OF_HOST_MEMORY, c.FOVEA_OUT_OF_DEVICE_MEMORY)


def new_diag() -> c.FoveaDiag:
    return c.FoveaDiag(struct_size=ctypes.sizeof(c.FoveaDiag))


def error_of(code: int, diag: c.FoveaDiag) -> Exception:
    """The exception for a call that returned `code`."""
    field = diag.field.decode()
    text = diag.text.decode(errors='replace') or lib.foveaResultText(code).decode()
    if code in _REFUSALS:
        return Refused(text, field)
    return MemoryError(text) if code in _MEMORY else FoveaError(text, code, field)


def check(code: int, diag: c.FoveaDiag) -> None:
    if code:
        raise error_of(code, diag)


class Device(NamedTuple):
    """One backend or device of this machine."""
    number: int    #: the value for `device=`
    name: str      #: "CPU (AVX2)", "llvmpipe (LLVM 15.0.6, 256 bits)", ...
    driver: str    #: driver name and version, API version; '' for the CPU
    usable: bool
    refusal: str   #: why not usable, or ''
    notes: tuple[str, ...]  #: features that are missing, and what they would buy


def _device(info: c.FoveaDeviceInfo) -> Device:
    def text(value: bytes | None) -> str:
        return (value or b'').decode(errors='replace')
    return Device(info.number, text(info.name), text(info.driver), bool(info.usable), text(info.refusal),
                  tuple(text(info.notes).splitlines()))


def devices() -> list[Device]:
    """Every backend and device of this machine, usable or not; the CPU first."""
    handle, diag = ctypes.c_void_p(), new_diag()
    check(lib.foveaListDevices(0, ctypes.byref(handle), ctypes.byref(diag)), diag)
    try:
        found = []
        for index in range(lib.foveaDeviceCount(handle)):
            info = c.FoveaDeviceInfo(struct_size=ctypes.sizeof(c.FoveaDeviceInfo))
            check(lib.foveaGetDevice(handle, index, ctypes.byref(info), None, ctypes.byref(diag)), diag)
            found.append(_device(info))
        return found
    finally:
        lib.foveaDestroyDeviceList(handle)


class Engine:
    """One open device. Calls on it take turns: the lock is held while one runs."""

    def __init__(self, options: c.FoveaEngineOptions) -> None:
        self._options = options
        self.lock, self.is_running = threading.RLock(), False
        handle, diag = self._open(), new_diag()
        _live.add(self)
        info = c.FoveaDeviceInfo(struct_size=ctypes.sizeof(c.FoveaDeviceInfo))
        check(lib.foveaEngineDevice(handle, ctypes.byref(info), None, ctypes.byref(diag)), diag)
        self.device = _device(info)
        self.reason: str = lib.foveaEngineReason(handle).decode()

    def _open(self) -> ctypes.c_void_p:
        handle, diag = ctypes.c_void_p(), new_diag()
        check(lib.foveaOpenEngine(ctypes.byref(self._options), ctypes.byref(handle), ctypes.byref(diag)), diag)
        self._close = weakref.finalize(self, lib.foveaCloseEngine, handle)
        self._close.atexit = False  # at its end the process gives everything back, drivers in their own order
        self.opened: ctypes.c_void_p | None = handle  #: None in a forked child that has not used it
        return handle

    @property
    def handle(self) -> ctypes.c_void_p:
        """The engine in the library. A forked child opens a new one."""
        if self.opened is None:
            with self.lock:
                return self.opened or self._open()
        return self.opened

    def abandon(self) -> None:
        """In a forked child: its threads stayed with the parent, so nothing of it may be used or closed."""
        self._close.detach()
        self.opened, self.lock, self.is_running = None, threading.RLock(), False


_CHOICES = {'auto': c.FOVEA_BACKEND_CHOICE_AUTO, 'cpu': c.FOVEA_BACKEND_CHOICE_CPU, 'vulkan': c.FOVEA_BACKEND_CHOICE_VULKAN,
            'reference': c.FOVEA_BACKEND_CHOICE_REFERENCE}
_engines: dict[Any, Engine] = {}
_live: weakref.WeakSet[Engine] = weakref.WeakSet()
_engines_lock = threading.Lock()


def open_engine(device: str | int = 'auto', *, threads: int | None = None, tuning_file: str | None = None,
                validation: bool = False) -> Engine:
    """Opens a separate engine; see engine_for."""
    return Engine(engine_options(device, threads, tuning_file, validation))


def engine_options(device: str | int, threads: int | None, tuning_file: str | None = None,
                   validation: bool = False) -> c.FoveaEngineOptions:
    options = c.FoveaEngineOptions(struct_size=ctypes.sizeof(c.FoveaEngineOptions))
    if isinstance(device, bool) or not isinstance(device, (str, int)):
        raise Refused(f"device is {device!r}; it must be a name or a number of fovea.devices()", 'device')
    if isinstance(device, int):
        put(options, 'device', device)
        options.has_device = 1
    elif device in _CHOICES:
        options.backend = _CHOICES[device]
    else:
        options.device_name = c_text('device', device)
    if threads is not None:
        options.cpu_threads = whole('threads', threads, 1, 2**16)
    if tuning_file is not None:
        options.tuning_file = os.fsencode(tuning_file)
    options.validation = int(validation)
    return options


def engine_for(device: str | int | Engine = 'auto') -> Engine:
    """The engine of `device`: 'auto' (Vulkan on a hardware device, else the CPU), 'cpu', 'vulkan', 'reference' (float64 on the
    CPU), a number of fovea.devices(), or a part of a device's name. Opened at the first call and kept."""
    if isinstance(device, Engine):
        return device
    with _engines_lock:
        engine = _engines.get((type(device), device))
        if engine is None:
            engine = _engines[type(device), device] = open_engine(device)
        return engine


def _after_fork() -> None:
    global _engines_lock
    for engine in list(_live):
        engine.abandon()
    _engines_lock = threading.Lock()


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_after_fork)
