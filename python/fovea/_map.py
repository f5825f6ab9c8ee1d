"""A picture of the weights of contexts whose matrix fits nowhere."""
from __future__ import annotations

import base64
import ctypes
import html
import os
import struct
import zlib
from typing import Any

import numpy as np

from . import _declarations as c
from ._inspection import Inspection, inspect
from ._library import Refused, c_text, check, lib, new_diag

_DECADES = 6  # a logarithmic range spans at most so many below the largest number, as in `fovea map`
_MOST_SVG_CELLS = 4096
_LEAST_SHOWN = 256  # dots along the longer side in a notebook, where the six pixels of six tokens would be a speck


class Map:
    """Weights as pixels. A notebook shows it as a picture.

    array     float32 [height, width]: what a row gives to the pixel's keys, the mean over the pixel's rows ('mass'), or the largest
              of the pixel's weights ('max'). NaN where some weight is NaN.
    rows, keys  the half-open ranges that the picture covers."""

    def __init__(self, array: np.ndarray, rows: tuple[int, int], keys: tuple[int, int], colormap: str, scale: str) -> None:
        if scale not in ('log', 'linear'):
            raise Refused(f"color_scale is {scale!r}; it must be 'log' or 'linear'", 'color_scale')
        self.array, self.rows, self.keys = array, rows, keys
        self._colormap, self._scale = colormap, scale
        self.rgb  # rejects an unknown colormap here

    @property
    def range(self) -> tuple[float, float]:
        """The numbers of the first and the last color."""
        there = self.array[np.isfinite(self.array)]
        largest = float(there.max(initial=0))
        if largest == 0:
            return 0.0, 1.0
        if self._scale == 'linear':
            return 0.0, largest
        smallest = float(there[there > 0].min())
        return max(min(smallest, largest / 10), largest * 10.0**-_DECADES), largest

    @property
    def rgb(self) -> np.ndarray:
        """uint8 [height, width, 3]."""
        low, high = self.range
        logarithmic = self._scale == 'log' and low > 0
        colormap = c.FoveaColormap(struct_size=ctypes.sizeof(c.FoveaColormap), name=c_text('colormap', self._colormap), low=low, high=high,
                                   scale=c.FOVEA_COLOR_SCALE_LOGARITHMIC if logarithmic else c.FOVEA_COLOR_SCALE_LINEAR)
        values, diag = np.ascontiguousarray(self.array), new_diag()
        out = np.empty((*values.shape, 3), np.uint8)
        check(lib.foveaColorValues(values.ctypes.data, values.size, ctypes.byref(colormap), out.ctypes.data, ctypes.byref(diag)), diag)
        return out

    def _png(self, side: int = 1) -> bytes:
        """The picture with `side` x `side` dots for each pixel."""
        rgb = self.rgb.repeat(side, axis=0).repeat(side, axis=1)
        height, width, _ = rgb.shape
        lines = np.zeros((height, 1 + 3 * width), np.uint8)  # a line begins with its filter; 0: none
        lines[:, 1:] = rgb.reshape(height, -1)
        parts = [b'\x89PNG\r\n\x1a\n']
        for kind, data in ((b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)), (b'IDAT', zlib.compress(lines.tobytes(), 9)),
                           (b'IEND', b'')):
            parts.append(struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data)))
        return b''.join(parts)

    def _repr_png_(self) -> bytes:
        return self._png(max(1, _LEAST_SHOWN // max(self.array.shape)))

    def svg(self) -> str:
        """A drawing: a rectangle with its number for each pixel of a small map, else the picture, with its axes."""
        height, width = self.array.shape
        side = max(1, 512 // max(height, width)) if self.array.size <= _MOST_SVG_CELLS else 1
        w, h, margin = width * side, height * side, 48
        parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{w + 2 * margin}" height="{h + 2 * margin}" '
                 'font-family="sans-serif" font-size="12">']
        if self.array.size <= _MOST_SVG_CELLS:
            rgb = self.rgb
            for (y, x), value in np.ndenumerate(self.array):
                red, green, blue = rgb[y, x]
                parts.append(f'<rect x="{margin + x * side}" y="{margin + y * side}" width="{side}" height="{side}" '
                             f'fill="#{red:02x}{green:02x}{blue:02x}"><title>{value:.4g}</title></rect>')
        else:
            data = base64.b64encode(self._png()).decode()
            parts.append(f'<image x="{margin}" y="{margin}" width="{w}" height="{h}" href="data:image/png;base64,{data}"/>')
        (r0, r1), (k0, k1) = self.rows, self.keys
        for text, x, y, anchor in ((f'key {k0}', margin, margin - 6, 'start'), (f'{k1 - 1}', margin + w, margin - 6, 'end'),
                                   (f'query {r0}', margin - 4, margin + 12, 'end'), (f'{r1 - 1}', margin - 4, margin + h, 'end')):
            parts.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}">{html.escape(text)}</text>')
        return '\n'.join(parts) + '\n</svg>\n'

    def save(self, path: str | os.PathLike[str]) -> None:
        """To a .png or .svg file."""
        name = os.fspath(path)
        kind = os.path.splitext(name)[1].lower()
        if kind not in ('.png', '.svg'):
            raise Refused(f'path is {name!r}; it must end in .png or .svg', 'path')
        content = self._png() if kind == '.png' else self.svg().encode()
        with open(name, 'wb') as file:
            file.write(content)

    def __repr__(self) -> str:
        height, width = self.array.shape
        return f'<fovea.Map of queries {self.rows[0]}:{self.rows[1]} and keys {self.keys[0]}:{self.keys[1]}, {width} x {height} pixels>'


def map_of(looked: Inspection, size: tuple[int, int] = (512, 512), *, head: int = 0, batch: int = 0, rows: Any = None, keys: Any = None,
           reducer: str = 'mass', colormap: str = 'viridis', color_scale: str = 'log') -> Map:
    """See map()."""
    row_range, key_range = looked._range('rows', rows, looked.rows), looked._range('keys', keys, looked.keys)
    head, batch = looked._head(head, batch)
    if not isinstance(size, (tuple, list)) or len(size) != 2 or not all(isinstance(n, (int, np.integer)) and n >= 1 for n in size):
        raise Refused(f'size is {size!r}; it must be (width, height), at least 1 each', 'size')
    if reducer not in ('mass', 'max'):
        raise Refused(f"reducer is {reducer!r}; it must be 'mass' or 'max'", 'reducer')
    width, height = min(int(size[0]), key_range[1] - key_range[0]), min(int(size[1]), row_range[1] - row_range[0])
    mass, largest = looked._tile(batch, (head, head + 1), row_range, key_range, (height, width),
                                 c.FOVEA_TILE_MASS if reducer == 'mass' else c.FOVEA_TILE_MAX)
    if mass is None:
        assert largest is not None
        return Map(largest[0], row_range, key_range, colormap, color_scale)
    tile = c.FoveaMapTileDesc(struct_size=ctypes.sizeof(c.FoveaMapTileDesc), first_row=row_range[0], row_count=row_range[1] - row_range[0],
                              first_key=key_range[0], key_count=key_range[1] - key_range[0], width=width, height=height)
    values, diag = np.empty((height, width), np.float32), new_diag()
    check(lib.foveaMapValues(ctypes.byref(tile), looked.rows, mass.ctypes.data, values.ctypes.data, ctypes.byref(diag)), diag)
    return Map(values, row_range, key_range, colormap, color_scale)


def map(q: Any, k: Any, lse: Any = None, size: tuple[int, int] = (512, 512), *, head: int = 0, batch: int = 0, rows: Any = None,
        keys: Any = None, reducer: str = 'mass', colormap: str = 'viridis', color_scale: str = 'log', device: Any = 'auto',
        **options: Any) -> Map:
    """A picture of one head's weights, or of the rectangle `rows` x `keys` of them, of `size` (width, height) pixels at most: from q,
    k and lse (return_lse=True; None: computed), never from the matrix. `options` are those of the call: causal, window, ...

    reducer           'mass': what a row gives to the pixel's keys, the mean over its rows; 'max': the largest weight
    colormap          'viridis', 'magma', 'cividis', 'grey' or 'blue-orange'
    color_scale       'log' or 'linear'"""
    return map_of(inspect(q, k, lse=lse, device=device, **options), size, head=head, batch=batch, rows=rows, keys=keys,
                  reducer=reducer, colormap=colormap, color_scale=color_scale)
