"""Arrays in and out without copies: numpy's own, and whatever has __dlpack__ (PyTorch, JAX, CuPy on the host, ...)."""
from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

from ._library import Refused

# ---- bfloat16 ----
# numpy has no bfloat16. Arrays of it are those of the package ml_dtypes (JAX's) or, within this package, words of 16
# bits with a type that marks them.

BFLOAT16 = np.dtype([('bfloat16', '<u2')])


def is_bfloat16(array: np.ndarray) -> bool:
    return array.dtype.kind == 'V' and (array.dtype == BFLOAT16 or array.dtype.name == 'bfloat16')


def native(dtype: np.dtype) -> np.dtype:
    """The type in the machine's byte order, in which the engine writes."""
    return dtype if dtype.isnative else dtype.newbyteorder('=')


def is_own(array: np.ndarray) -> bool:
    """True if the machine can read the elements in place."""
    return array.flags.aligned and array.dtype.isnative


def type_name(array: np.ndarray) -> str:
    return 'bfloat16' if is_bfloat16(array) else str(array.dtype)


def widened(array: np.ndarray) -> np.ndarray:
    """float32 as it is, float16 and bfloat16 widened to it, exactly."""
    if not is_bfloat16(array):
        return np.asarray(array, np.float32)
    wide = np.empty(array.shape, np.uint32)
    np.left_shift(array.view(np.uint16), 16, out=wide, dtype=np.uint32, casting='unsafe')
    return wide.view(np.float32)


# ---- DLPack (dmlc/dlpack.h, versions 0.x and their unversioned capsule) ----
# numpy reads neither bfloat16 nor, in its older versions, bool this way: hence this reader.


class _DLTensor(ctypes.Structure):
    _fields_ = [('data', ctypes.c_void_p), ('device_type', ctypes.c_int32), ('device_id', ctypes.c_int32),
                ('ndim', ctypes.c_int32), ('code', ctypes.c_uint8), ('bits', ctypes.c_uint8), ('lanes', ctypes.c_uint16),
                ('shape', ctypes.POINTER(ctypes.c_int64)), ('strides', ctypes.POINTER(ctypes.c_int64)),
                ('byte_offset', ctypes.c_uint64)]


_HOST_DEVICES = (1, 3, 11, 13)  # kDLCPU, and memory of the host that CUDA, ROCm or CUDA's managed memory pinned
_CODES = {0: 'i', 1: 'u', 2: 'f', 6: 'b'}
_BFLOAT16 = 4

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class _Borrowed:
    """Memory of a capsule. The capsule is never consumed, so that its own destructor frees the tensor once the last array
    of it is gone."""

    def __init__(self, capsule: Any, interface: dict[str, Any]) -> None:
        self._capsule = capsule
        self.__array_interface__ = interface


def _from_dlpack(name: str, value: Any) -> np.ndarray:
    """The array that `value` holds."""
    try:
        capsule = value.__dlpack__()
    except (BufferError, RuntimeError, TypeError) as error:
        raise Refused(f'{name} is a {type(value).__name__}, which gives no host memory: {error}', name) from error
    address = _get_pointer(capsule, b'dltensor')
    tensor = _DLTensor.from_address(address)
    if tensor.device_type not in _HOST_DEVICES:
        raise Refused(f'{name} is on a device (DLPack device type {tensor.device_type}); copy it to the CPU first', name)
    code, bits = tensor.code, tensor.bits
    is_words = code == _BFLOAT16 and bits == 16
    if tensor.lanes != 1 or bits not in (8, 16, 32, 64) or not (is_words or code in _CODES):
        raise Refused(f'{name} has elements of DLPack type {code} with {bits} bits; they must be float32, float16 or bfloat16',
                      name)
    size = bits // 8
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = None
    if tensor.strides:
        strides = tuple(tensor.strides[i] * size for i in range(tensor.ndim))
    kind = 'u' if is_words else _CODES[code]
    if 0 in shape:
        return np.empty(shape, BFLOAT16 if is_words else f'{kind}{size}')
    interface = {'version': 3, 'shape': shape, 'strides': strides, 'typestr': f'{"|" if size == 1 else "<"}{kind}{size}',
                 'data': ((tensor.data or 0) + tensor.byte_offset, False)}
    array = np.asarray(_Borrowed(capsule, interface))
    return array.view(BFLOAT16) if is_words else array


def _settled(name: str, value: Any) -> Any:
    """A tensor of PyTorch's whose memory holds its numbers, which nobody waits to differentiate."""
    if getattr(value, 'requires_grad', False):
        torch = sys.modules.get('torch')
        if torch is None or torch.is_grad_enabled():
            raise Refused(f'{name} requires grad, and autograd cannot follow this call: give {name}.detach(), or call it under '
                          'torch.no_grad(); fovea.gradients has the gradients', name)
        value = value.detach()
    for bit in ('conj', 'neg'):  # DLPack shows the memory that these still change
        if getattr(value, f'is_{bit}', bool)():
            value = getattr(value, f'resolve_{bit}')()
    return value


def as_array(name: str, value: Any, words: bool = False) -> np.ndarray:
    """`value` as a numpy array over the same memory, or a copy that is aligned and in the machine's byte order. words: an array of
    uint16 is one of bfloat16."""
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray):
            raise Refused(f'{name} is a masked array, whose mask would be lost: give {name}.filled(0), and the mask as mask=',
                          name)
        if not is_own(value):
            value = value.astype(native(value.dtype))
        return value.view(BFLOAT16) if words and value.dtype == np.uint16 else value
    if hasattr(value, '__dlpack__'):
        return _from_dlpack(name, _settled(name, value))
    array = np.asarray(value)
    if array.dtype == object:
        raise Refused(f'{name} is a {type(value).__name__}; it must be an array', name)
    return array


def like(given: Any, array: np.ndarray) -> Any:
    """`array` as the kind of array that `given` is, over the same memory where its type allows it."""
    words = is_bfloat16(array)
    if isinstance(given, np.ndarray):
        return array.view(native(given.dtype)) if words and given.itemsize == 2 else array
    torch = sys.modules.get('torch')
    if torch is not None and isinstance(given, torch.Tensor):
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16) if words else torch.from_numpy(array)
    namespace = getattr(given, '__array_namespace__', None)
    if words:  # numpy's own exports know no bfloat16
        ml_dtypes = sys.modules.get('ml_dtypes')
        of_words = array.view(np.uint16 if ml_dtypes is None else ml_dtypes.bfloat16)
        return of_words if namespace is None or ml_dtypes is None else namespace().asarray(of_words)
    if namespace is not None:
        return namespace().from_dlpack(array)
    return array


# ---- strides ----


def readable(array: np.ndarray, name: str) -> np.ndarray:
    """Returns the array itself if the engine can read it in place (rows contiguous, steps whole and not negative),
    else a packed copy. It also copies a large span with few elements: a device would need a buffer of the whole
    span."""
    size = array.itemsize
    strides = array.strides
    if array.size == 0 or array.flags.c_contiguous:
        return array
    rows_whole = strides[-1] == size or array.shape[-1] == 1
    is_sparse = span_bytes(array) > max(8 * array.nbytes, 16 << 20)
    if rows_whole and not is_sparse and all(s >= 0 and s % size == 0 for s in strides[:-1]):
        return array
    return np.ascontiguousarray(array)


def span_bytes(array: np.ndarray) -> int:
    """Bytes from the first element to after the last one."""
    if array.size == 0:
        return 0
    return sum((n - 1) * s for n, s in zip(array.shape, array.strides)) + array.itemsize


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__['data'][0])
