"""Texts and bytes that the library makes."""
from __future__ import annotations

import ctypes
from typing import Any, Callable

from ._library import check, lib, new_diag

PLAIN, JSON, CSV, LATEX, PYTHON = range(5)  # FoveaTextForm

# As an address: a c_char_p would end at the first 0, and pictures have many.
_address_of = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(('foveaTextData', lib))


def made_bytes(make: Callable[..., int], *arguments: Any) -> bytes:
    """Calls a function whose last arguments are FoveaText* out and FoveaDiag* diag."""
    handle, diag = ctypes.c_void_p(), new_diag()
    check(make(*arguments, ctypes.byref(handle), ctypes.byref(diag)), diag)
    try:
        return ctypes.string_at(_address_of(handle), lib.foveaTextSize(handle))
    finally:
        lib.foveaDestroyText(handle)


def made_text(make: Callable[..., int], *arguments: Any) -> str:
    return made_bytes(make, *arguments).decode()
