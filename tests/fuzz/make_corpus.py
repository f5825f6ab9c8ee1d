#!/usr/bin/env python3
"""Writes the corpus of files that the readers must refuse, and a few that they must accept.

    python3 tests/fuzz/make_corpus.py        rewrites tests/fuzz/corpus/<format>/

Each folder gets one file a case and `expected.txt`: a line `FILE<TAB>TEXT` for each, TEXT being a part of the one-line
error, or empty for a file that must load. Independent of the readers: only Python's own modules build the files.
"""

import io
import json
import math
import shutil
import struct
import zipfile
import zlib
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus"


class Folder:
    def __init__(self, name, suffix):
        self.path = CORPUS / name
        self.suffix = suffix
        self.lines = []
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)

    def add(self, name, data, expected=""):
        file_name = name + self.suffix
        assert not (self.path / file_name).exists(), file_name
        (self.path / file_name).write_bytes(data)
        self.lines.append(f"{file_name}\t{expected}\n")

    def close(self):
        (self.path / "expected.txt").write_text("".join(self.lines))
        refused = sum(1 for line in self.lines if not line.endswith("\t\n"))
        print(f"{self.path.name}: {refused} refused, {len(self.lines) - refused} accepted")


# ---- safetensors ---------------------------------------------------------------------------------------------------


def safetensors(header, data=b""):
    if not isinstance(header, (bytes, str)):
        header = json.dumps(header)
    if isinstance(header, str):
        header = header.encode()
    return struct.pack("<Q", len(header)) + header + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def make_safetensors():
    folder = Folder("safetensors", ".safetensors")
    good = '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}'
    eight = bytes(8)

    def bad(name, header, expected, data=eight):
        folder.add(name, safetensors(header, data), expected)

    folder.add("valid_two", safetensors({"__metadata__": {"k": "v"}, "a": entry(), "b": entry("I8", (2, 2), (8, 12))},
                                        bytes(12)))
    folder.add("valid_empty", safetensors("{}"))
    folder.add("valid_scalar_and_empty", safetensors({"s": entry("F64", (), (0, 8)), "e": entry("F16", (0, 3), (8, 8))}, eight))
    folder.add("valid_nan_inf", safetensors({"a": entry()}, struct.pack("<2f", float("nan"), float("inf"))))
    folder.add("valid_escaped_names", safetensors('{"\\u00e9\\n\\ud83d\\ude00":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}   ', eight))

    folder.add("file_empty", b"", "too few for a safetensors file")
    folder.add("file_seven_bytes", bytes(7), "7 bytes are too few")
    folder.add("file_nine_bytes", struct.pack("<Q", 1) + b"{", "9 bytes are too few")
    for name, length, expected in (
        ("length_zero", 0, "the header length is 0; it must be from 2 to 100000000"),
        ("length_one", 1, "the header length is 1; it must be from 2 to 100000000"),
        ("length_above_limit", 100_000_001, "the header length is 100000001; it must be from 2 to 100000000"),
        ("length_past_file", 60, "the header has 60 bytes, but only 54 follow; the file was cut short"),
        ("length_max", 2**64 - 1, "the header length is 18446744073709551615; it must be"),
        ("length_sign_bit", 2**63, "; it must be from 2 to 100000000"),
    ):
        folder.add(name, struct.pack("<Q", length) + (good + "}").encode(), expected)
    bad("first_byte_bracket", "[]", "byte 8: header: does not begin with '{'", b"")
    bad("first_byte_space", " {}", "does not begin with '{'", b"")
    bad("utf8_stray_byte", b'{"a\xff":{}}', "byte 11: header: not valid UTF-8")
    bad("utf8_overlong", b'{"\xc0\xaf":{}}', "not valid UTF-8")
    bad("utf8_surrogate", b'{"\xed\xa0\x80":{}}', "not valid UTF-8")
    bad("utf8_above_10ffff", b'{"\xf4\x90\x80\x80":{}}', "not valid UTF-8")
    bad("utf8_cut", b'{"\xe2\x82', "not valid UTF-8")
    bad("depth_five", '{"a":{"shape":[[[2]]]}}', "nested too deeply")
    bad("depth_bomb", '{"a":' + "[" * 4000, "nested too deeply")
    bad("escape_lone_high", '{"\\ud800":1}', "lone surrogate")
    bad("escape_lone_low", '{"\\udc00":1}', "lone surrogate")
    bad("escape_high_and_letter", '{"\\ud800\\u0041":1}', "lone surrogate")
    bad("escape_unknown", '{"\\q":1}', "unknown escape")
    bad("escape_short_hex", '{"\\u12":1}', "four hex digits expected")
    bad("string_control_character", b'{"a\x01":1}', "control character inside a string")
    bad("string_without_end", '{"abc', "byte 9: header: string without an end")
    bad("string_ends_in_backslash", '{"abc\\', "unknown escape")
    bad("json_cut", good, "',' or '}' expected")
    bad("json_no_colon", '{"a" {}}', "':' expected")
    bad("json_no_comma", '{"a":1 "b":2}', "',' or '}' expected")
    bad("json_trailing_comma", good + ",}", "a key in quotes expected")
    bad("json_text_after", good + "}x", "text after the end of the JSON value")
    bad("json_two_values", good + "}{}", "text after the end")
    bad("json_nul_after", good.encode() + b"}\0", "text after the end")
    bad("json_single_quotes", "{'a':1}", "a key in quotes expected")
    bad("json_bare_word", '{"a":True}', "not a JSON value")
    bad("json_nan", '{"a":NaN}', "not a JSON value")
    bad("json_comment", '{/**/"a":1}', "a key in quotes expected")
    bad("json_leading_zero", '{"a":01}', "leading zero")
    bad("json_bare_point", '{"a":1.}', "digits expected after '.'")
    bad("json_bare_exponent", '{"a":1e}', "digits expected in the exponent")
    bad("tensor_not_object", '{"a":5}', "tensor 'a', byte 13: the entry must be an object")
    bad("tensor_null", '{"a":null}', "the entry must be an object with dtype, shape and data_offsets")
    for field in ("dtype", "shape", "data_offsets"):
        partial = entry()
        del partial[field]
        bad(f"missing_{field}", {"a": partial}, f"tensor 'a', byte 14: {field} is missing")
        value = json.dumps(entry()[field])
        bad(f"twice_{field}", good[:-1] + f',"{field}":{value}}}}}', f"{field} appears twice")
    bad("unknown_key", {"a": {**entry(), "strides": [1]}}, "unknown key 'strides'")
    bad("dtype_number", {"a": entry(5)}, "dtype must be a string")
    bad("dtype_unknown", {"a": entry("F8_E9M9")}, "dtype 'F8_E9M9' is not one of BOOL")
    bad("dtype_lower_case", {"a": entry("f32")}, "dtype 'f32' is not one of")
    bad("dtype_control_character", '{"a":{"dtype":"\\u001b[31m","shape":[2],"data_offsets":[0,8]}}', "dtype '\\x1b[31m' is not")
    bad("shape_not_array", {"a": {**entry(), "shape": 2}}, "shape must be an array of integers")
    bad("shape_of_text", {"a": entry(shape=("2",))}, "dimension 0 of shape is not an integer")
    bad("shape_negative", {"a": entry(shape=(-2,))}, "dimension 0 of shape is not an integer")
    bad("shape_fraction", {"a": entry(shape=(2.5,))}, "dimension 0 of shape is not an integer")
    bad("shape_exponent", '{"a":{"dtype":"F32","shape":[2e0],"data_offsets":[0,8]}}', "dimension 0 of shape")
    bad("shape_above_limit", {"a": entry(shape=(2**48 + 1,))}, "is not an integer from 0 to 281474976710656")
    bad("shape_above_64_bits", {"a": entry(shape=(2**64 + 2,))}, "is not an integer from 0 to")
    bad("shape_nine_dims", {"a": entry(shape=(1,) * 8 + (2,))}, "more dimensions than the limit, 8")
    bad("shape_product_overflow", {"a": entry(shape=(2**40, 2**40))}, "needs more than 2^64 - 1 bytes")
    bad("shape_product_wraps_to_8", {"a": entry("U8", (2**32 + 1, 2**32 + 1, 8))}, "needs more than 2^64 - 1 bytes")
    bad("offsets_not_array", {"a": {**entry(), "data_offsets": 8}}, "data_offsets must be an array of two integers")
    bad("offsets_one", {"a": entry(offsets=(8,))}, "fewer than two elements; it must have two")
    bad("offsets_three", {"a": entry(offsets=(0, 4, 8))}, "more than two elements; it must have two")
    bad("offsets_negative", {"a": entry(offsets=(-8, 0))}, "each of data_offsets must be an integer")
    bad("offsets_above_64_bits", {"a": entry(offsets=(0, 2**64))}, "each of data_offsets must be an integer")
    bad("offsets_reversed", {"a": entry(offsets=(8, 0))}, "tensor 'a', byte 9: data_offsets begin at 8, after their end 0")
    bad("offsets_past_data", {"a": entry(offsets=(8, 16))}, "data_offsets end at 16, the data has 8 bytes")
    bad("offsets_wrong_size", {"a": entry(offsets=(0, 4))}, "data_offsets span 4 bytes, shape [2] of F32 needs 8")
    bad("data_missing", {"a": entry()}, "the data has 0 bytes", b"")
    bad("data_hole_first", {"a": entry(offsets=(4, 12))}, "begin at 4, the data before ends at 0 (hole)", bytes(12))
    bad("data_hole_between", {"a": entry(), "b": entry(offsets=(12, 20))}, "tensor 'b', byte 70: data_offsets begin at 12, the data before ends at 8 (hole)", bytes(20))
    bad("data_overlap", {"a": entry(), "b": entry(offsets=(4, 12))}, "(overlap)", bytes(12))
    bad("data_shared", {"a": entry(), "b": entry()}, "(overlap)")
    bad("data_after_last", {"a": entry()}, "4 bytes after the last tensor belong to none", bytes(12))
    bad("data_without_tensor", "{}", "8 bytes after the last tensor belong to none")
    bad("empty_tensor_inside", {"a": entry(), "e": entry(shape=(0,), offsets=(4, 4))}, "(overlap)")
    bad("name_twice", good + "," + good[1:] + "}", "the name appears twice")
    bad("name_twice_escaped", good + "," + good[1:].replace('"a"', '"\\u0061"') + "}", "tensor 'a', byte 62: the name appears twice")
    bad("name_with_escape_sequence", '{"\\u001b]0;x":1}', "tensor '\\x1b]0;x'")
    bad("metadata_not_object", '{"__metadata__":"x"}', "__metadata__ must be an object of strings", b"")
    bad("metadata_number", '{"__metadata__":{"k":5}}', "__metadata__ 'k' must be a string", b"")
    bad("metadata_nested", '{"__metadata__":{"k":{"l":"m"}}}', "__metadata__ 'k' must be a string", b"")
    bad("metadata_key_twice", '{"__metadata__":{"k":"1","j":"2","k":"3"}}', "__metadata__ 'k' appears twice", b"")
    bad("metadata_twice", '{"__metadata__":{},"__metadata__":{}}', "__metadata__ appears twice", b"")
    folder.close()


# ---- npy -----------------------------------------------------------------------------------------------------------


def npy(header="{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", data=bytes(8), version=(1, 0), length=None):
    header = header.encode() if isinstance(header, str) else header
    fmt = "<H" if version[0] == 1 else "<I"
    return b"\x93NUMPY" + bytes(version) + struct.pack(fmt, len(header) if length is None else length) + header + data


def npy_header(descr="'<f4'", order="False", shape="(2,)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


def make_npy():
    folder = Folder("npy", ".npy")
    folder.add("valid_v1", npy())
    folder.add("valid_v2_big_endian", npy(npy_header("'>i2'", shape="(2, 2)"), bytes(range(8)), (2, 0)))
    folder.add("valid_v3_fortran", npy(npy_header("'<u2'", "True", "(2, 2)"), bytes(range(8)), (3, 0)))
    folder.add("valid_scalar", npy(npy_header("'|b1'", shape="()"), b"\1"))
    folder.add("valid_empty_big_endian", npy(npy_header("'>f8'", "True", "(0, 3)"), b""))

    def bad(name, expected, **fields):
        data = fields.pop("data", bytes(8))
        folder.add(name, npy(npy_header(**fields), data), expected)

    def bad_text(name, header, expected):
        folder.add(name, npy(header), expected)

    folder.add("file_empty", b"", "does not begin with \\x93NUMPY")
    folder.add("magic_wrong", b"\x93NUMPZ" + npy()[6:], "does not begin with \\x93NUMPY")
    folder.add("magic_cut", b"\x93NUM", "does not begin with")
    folder.add("version_missing", b"\x93NUMPY\x01", "ends before the version")
    folder.add("version_0", npy(version=(0, 0)), "version 0.0 is not 1.0, 2.0 or 3.0")
    folder.add("version_4", npy(version=(4, 0)), "version 4.0 is not")
    folder.add("version_1_1", npy(version=(1, 1)), "version 1.1 is not")
    folder.add("length_missing_v1", b"\x93NUMPY\x01\x00\x10", "ends before the header length")
    folder.add("length_missing_v2", b"\x93NUMPY\x02\x00\x10\x00\x00", "ends before the header length")
    folder.add("length_past_file", npy(length=200), "the header has 200 bytes, but only 65 follow; the file was cut short")
    folder.add("length_past_file_by_less_than_the_prefix", npy(length=70), "the header has 70 bytes, but only 65 follow")
    folder.add("length_above_limit", npy(version=(2, 0), length=70_000), "the header length is 70000; the limit is 65536")
    folder.add("length_max", npy(version=(3, 0), length=2**32 - 1), "the header length is 4294967295; the limit is 65536")
    folder.add("length_zero", npy("", b""), "does not begin with '{'")
    bad_text("utf8_stray_byte", b"{'descr\xff': '<f4'}", "byte 17: header: not valid UTF-8")
    bad_text("not_a_dictionary", "['descr']", "does not begin with '{'")
    bad_text("dictionary_cut", "{'descr': '<f4'", "',' or '}' expected")
    bad_text("dictionary_empty", "{}", "descr is missing")
    bad_text("text_after", npy_header() + " x", "text after the dictionary")
    bad_text("key_without_quotes", "{descr: '<f4'}", "a key in quotes expected")
    bad_text("key_without_end", "{'descr: <f4}", "a key in quotes expected")
    bad_text("key_unknown", "{'descr': '<f4', 'strides': (4,)}", "unknown key 'strides'")
    bad_text("key_twice", "{'descr': '<f4', 'descr': '<f8'}", "descr appears twice")
    bad_text("colon_missing", "{'descr' '<f4'}", "':' expected")
    bad_text("comma_missing", "{'descr': '<f4' 'fortran_order': False}", "',' or '}' expected")
    bad_text("missing_descr", "{'fortran_order': False, 'shape': (2,)}", "descr is missing")
    bad_text("missing_order", "{'descr': '<f4', 'shape': (2,)}", "fortran_order is missing")
    bad_text("missing_shape", "{'descr': '<f4', 'fortran_order': False}", "shape is missing")
    bad("descr_object", "is an object array: it holds a pickle", descr="'|O'")
    bad("descr_object_8", "is an object array: it holds a pickle", descr="'|O8'")
    bad("descr_structured", "descr is a structured type", descr="[('a', '<f4')]")
    bad("descr_complex", "descr '<c8' is not supported; it must be a bool, integer or float", descr="'<c8'")
    bad("descr_text", "descr '<U4' is not", descr="'<U4'")
    bad("descr_bytes", "descr '|S4' is not", descr="'|S4'")
    bad("descr_time", "descr '<M8[ns]' is not", descr="'<M8[ns]'")
    bad("descr_long_double", "descr '<f16' is not", descr="'<f16'")
    bad("descr_no_order", "descr 'f4' is not", descr="'f4'")
    bad("descr_bar_wide", "descr '|f4' is not", descr="'|f4'")
    bad("descr_empty", "descr '' is not", descr="''")
    bad("descr_number", "descr must be text", descr="4")
    bad("descr_escape_sequence", "descr '\\x1b[2J' is not", descr="'\x1b[2J'")
    bad("order_number", "fortran_order must be True or False", order="0")
    bad("order_lower_case", "fortran_order must be True or False", order="false")
    bad("shape_list", "shape must be a tuple of integers", shape="[2]")
    bad("shape_number", "shape must be a tuple of integers", shape="2")
    bad("shape_no_comma", "shape must be a tuple, such as (3,); it is a number", shape="(2)")
    bad("shape_negative", "dimension 0 of shape is not an integer", shape="(-2,)")
    bad("shape_fraction", "',' or ')' expected", shape="(2.0,)")
    bad("shape_text", "dimension 0 of shape is not an integer", shape="('2',)")
    bad("shape_cut", "dimension 1 of shape is not an integer", shape="(2,")
    bad("shape_above_limit", "dimension 1 of shape is not an integer from 0 to 281474976710656", shape="(2, 281474976710657)")
    bad("shape_above_64_bits", "dimension 0 of shape is not an integer", shape="(99999999999999999999,)")
    bad("shape_nine_dims", "more dimensions than the limit, 8", shape="(1, 1, 1, 1, 1, 1, 1, 1, 2)")
    bad("shape_product_overflow", "needs more than 2^64 - 1 bytes", shape="(1099511627776, 1099511627776)")
    bad("data_missing", "0 bytes of data, shape [2] of f32 needs 8", data=b"")
    bad("data_short", "7 bytes of data, shape [2] of f32 needs 8", data=bytes(7))
    bad("data_long", "9 bytes of data, shape [2] of f32 needs 8", data=bytes(9))
    bad("data_claims_terabytes", "8 bytes of data, shape [1048576, 1048576] of f32 needs 4398046511104", shape="(1048576, 1048576)")
    bad("data_claims_terabytes_fortran", "needs 4398046511104", order="True", shape="(1048576, 1048576)")
    folder.close()


# ---- npz -----------------------------------------------------------------------------------------------------------


def deflate(data, level=9):
    packer = zlib.compressobj(level, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


class Zip:
    """A zip archive of which every field can be made wrong."""

    def __init__(self):
        self.body = b""
        self.directory = b""
        self.count = 0

    def add(self, name="a.npy", data=None, method=0, **wrong):
        data = npy() if data is None else data
        packed = wrong.get("packed", deflate(data) if method == 8 else data)
        crc = wrong.get("crc", zlib.crc32(data))
        packed_bytes = wrong.get("packed_bytes", len(packed))
        size_bytes = wrong.get("size_bytes", len(data))
        flags = wrong.get("flags", 0)
        extra = wrong.get("extra", b"")
        name = name if isinstance(name, bytes) else name.encode()
        offset = wrong.get("offset", len(self.body))
        fields = struct.pack("<HHHHHIII", 20, flags, method, 0, 0x21, crc, packed_bytes, size_bytes)
        local_fields = wrong.get("local_fields", fields)
        local_name = wrong.get("local_name", name)
        self.body += wrong.get("local_signature", b"PK\3\4") + local_fields + struct.pack("<HH", len(local_name), len(extra))
        self.body += local_name + extra + packed + wrong.get("after", b"")
        self.directory += b"PK\1\2" + struct.pack("<H", 20) + fields
        self.directory += struct.pack("<HHHHHII", wrong.get("name_bytes", len(name)), len(extra), 0, wrong.get("disk", 0), 0, 0, offset)
        self.directory += name + extra
        self.count += 1
        return self

    def end(self, comment=b"", **wrong):
        count = wrong.get("count", self.count)
        return self.body + self.directory + wrong.get("before_end", b"") + b"PK\5\6" + struct.pack(
            "<HHHHIIH", wrong.get("disk", 0), 0, count, count, wrong.get("directory_bytes", len(self.directory)),
            wrong.get("directory_offset", len(self.body)), wrong.get("comment_bytes", len(comment))) + comment


def python_zip(method, zip64=False, comment=b"", stream=False):
    class Unseekable(io.BytesIO):
        def seekable(self):
            return False

        def seek(self, *_):
            raise io.UnsupportedOperation("seek")

        def tell(self):
            raise io.UnsupportedOperation("tell")

    out = Unseekable() if stream else io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name in ("a.npy", "b.npy"):
            with archive.open(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), "w", force_zip64=zip64) as file:
                file.write(npy())
        archive.comment = comment
    return out.getvalue()


def make_npz():
    folder = Folder("npz", ".npz")
    folder.add("valid_stored", python_zip(zipfile.ZIP_STORED))
    folder.add("valid_deflated", Zip().add(method=8).add("b.npy").end())
    folder.add("valid_zip64_local", python_zip(zipfile.ZIP_STORED, zip64=True))
    folder.add("valid_comment", python_zip(zipfile.ZIP_STORED, comment=b"a comment"))
    folder.add("valid_streamed", python_zip(zipfile.ZIP_STORED, stream=True))
    folder.add("valid_empty", Zip().end())

    def bad(case, expected, end=None, **fields):
        folder.add(case, Zip().add(**fields).end(**(end or {})), expected)

    good = Zip().add().end()
    folder.add("file_empty", b"", "0 bytes are too few for a zip archive, the least is 22")
    folder.add("file_short", good[:21], "21 bytes are too few")
    folder.add("file_text", b"this is not a zip archive at all", "no end-of-archive record")
    folder.add("end_cut", good[:-1], "no end-of-archive record")
    folder.add("end_text_after", good + b"x", "no end-of-archive record")
    bad("end_comment_too_long", "no end-of-archive record", end={"comment_bytes": 3})
    bad("end_disk", "spread over several disks", end={"disk": 1})
    bad("end_directory_offset", "does not end at", end={"directory_offset": 7})
    bad("end_directory_size", "does not end at", end={"directory_bytes": 1})
    bad("end_directory_past_file", "does not end at", end={"directory_bytes": 2**31})
    bad("end_gap", "does not end at", end={"before_end": b"gap"})
    folder.add("prefix_before_archive", b"MZ" + good, "does not end at")
    bad("count_too_many", "no record of the central directory here", end={"count": 2, "before_end": bytes(60), "directory_bytes": 111})
    bad("count_absurd", "65000 entries do not fit a central directory of", end={"count": 65000})
    bad("count_too_few", "belong to no entry", end={"count": 0})
    bad("zip64_locator_missing", "the zip64 locator is missing", end={"directory_offset": 2**32 - 1})
    locator = b"PK\6\7" + struct.pack("<IQI", 0, 2**63, 1)
    bad("zip64_end_missing", "the zip64 end record is not where its locator says", end={"before_end": locator})
    base = Zip().add()
    size, directory = len(base.body), len(base.directory)

    def zip64_end(count, directory_bytes, offset, disk=0, length=44):
        return b"PK\6\6" + struct.pack("<QHHIIQQQQ", length, 45, 45, disk, 0, count, count, directory_bytes, offset)

    def with_zip64(record):
        return Zip().add().end(before_end=record + b"PK\6\7" + struct.pack("<IQI", 0, size + directory, 1), count=0xFFFF)

    folder.add("valid_zip64_end", with_zip64(zip64_end(1, directory, size)))
    folder.add("zip64_count_absurd", with_zip64(zip64_end(2**60, directory, size)), "entries do not fit a central directory")
    folder.add("zip64_directory_absurd", with_zip64(zip64_end(1, 2**63, size)), "does not end at")
    folder.add("zip64_disk", with_zip64(zip64_end(1, directory, size, disk=1)), "spread over several disks")
    folder.add("zip64_length", with_zip64(zip64_end(1, directory, size, length=45)), "is not where its locator says")
    bad("zip64_extra_missing", "a 64-bit size is announced and missing", size_bytes=2**32 - 1, packed_bytes=2**32 - 1)
    bad("zip64_extra_short", "a 64-bit size is announced and missing", size_bytes=2**32 - 1, packed_bytes=2**32 - 1,
        extra=struct.pack("<HHQ", 1, 8, 73))
    bad("zip64_extra_past_end", "a 64-bit size is announced and missing", size_bytes=2**32 - 1,
        extra=struct.pack("<HHQ", 1, 60, 73))
    bad("record_past_directory", "reaches past its end", name_bytes=60)
    bad("name_not_npy", "entry 'a.txt', byte 110: this is not an array; the name of each entry must end in .npy", name="a.txt")
    bad("name_folder", "is not an array", name="folder/")
    bad("name_not_utf8", "name is not valid UTF-8", name=b"\xff.npy")
    bad("name_local_differs", "the local header has another name", local_name=b"b.npy")
    folder.add("name_twice", Zip().add().add().end(), "the name appears twice")
    bad("flag_encrypted", "is encrypted", flags=1)
    bad("flag_unknown", "the entry has flags that are not supported", flags=0x2000)
    bad("method_bzip2", "compression method is 12; it must be 0 (stored) or 8 (deflated)", method=12, packed=b"x")
    bad("method_local_differs", "the local header has another compression method",
        local_fields=struct.pack("<HHHHHIII", 20, 0, 8, 0, 0x21, zlib.crc32(npy()), len(npy()), len(npy())))
    bad("entry_disk", "is on another disk", disk=1)
    bad("local_offset_past_file", "no local header at byte 1000", offset=1000)
    bad("local_signature", "no local header at byte 0", local_signature=b"PK\3\5")
    bad("local_size_differs", "the local header has other sizes or another checksum",
        local_fields=struct.pack("<HHHHHIII", 20, 0, 0, 0, 0x21, zlib.crc32(npy()), len(npy()), 5))
    over = len(npy()) + 3
    bad("packed_into_directory", "packed bytes reach past the central directory", packed_bytes=over, size_bytes=over)
    bad("packed_past_directory", "packed bytes reach past the central directory", packed_bytes=5000, size_bytes=5000)
    bad("stored_sizes_differ", "is stored, yet 75 bytes become 80", size_bytes=80)
    folder.add("overlap_same_data", Zip().add().add("b.npy", offset=0, local_name=b"a.npy").end(), "the local header has another name")
    inner = Zip().add("b.npy").body
    folder.add("overlap_nested", Zip().add("a.npy", inner, packed=inner).add("b.npy", offset=35).end(), "the entry overlaps the one before")
    bad("crc_stored", "the checksum is wrong", crc=1)
    bad("crc_deflated", "the checksum is wrong", method=8, crc=1)
    bad("deflate_cut", "the deflated data is cut short", method=8, packed=deflate(npy())[:-4])
    bad("deflate_corrupt", "the deflated data is corrupt", method=8, packed=b"\xff" * 30)
    bad("deflate_left_over", "with 3 left over", method=8, packed=deflate(npy()) + b"abc")
    bad("deflate_too_long", "inflates to more bytes than its header says", method=8, size_bytes=20)
    bad("deflate_too_short", "inflates to 75 bytes with 0 left over, its header says 76", method=8, size_bytes=76)
    bad("bomb_undeclared", "inflates to more bytes than its header says", method=8, packed=deflate(bytes(2_000_000)))
    bad("bomb_declared", "inflates to 75 bytes with 0 left over, its header says 4294967294", method=8, size_bytes=2**32 - 2)
    bomb = npy(npy_header(shape="(499984,)"), bytes(1_999_936))
    bad("bomb_wrong_shape", "bytes of data, shape [2] of f32 needs 8", data=npy(data=bytes(500_000)), method=8)
    folder.add("bomb_cut", Zip().add(data=bomb, method=8, packed=deflate(bomb)[:-10]).end(), "the deflated data is cut short")
    bad("npy_object", "entry 'a.npy': byte 20: descr '|O' is an object array", data=npy(npy_header("'|O'"), b"\x80\x04N."))
    bad("npy_not_npy", "entry 'a.npy': byte 0: this is not an npy file", data=b"hello")
    bad("npy_empty", "entry 'a.npy': byte 0: this is not an npy file", data=b"")
    bad("npy_cut", "2 bytes of data, shape [2] of f32 needs 8", data=npy()[:-6])
    folder.close()


# ---- csv -----------------------------------------------------------------------------------------------------------


def make_csv():
    folder = Folder("csv", ".csv")
    folder.add("valid_plain", b"1,2\n3,4\n")
    folder.add("valid_header_crlf_quotes", b'"a ""b""",c\r\n"1",2e-3\r\n-inf,nan\r\n')
    folder.add("valid_bom_no_newline", b"\xef\xbb\xbf1.5, -2 ,+3")
    folder.add("valid_header_only", b"q,k,v\n")

    def bad(name, data, expected):
        folder.add(name, data, expected)

    bad("file_empty", b"", "byte 0: the file is empty")
    bad("file_only_bom", b"\xef\xbb\xbf", "the file is empty")
    bad("word", b"1,2\n3,x\n", "row 2, column 2, byte 6: 'x' is not a number that float64 holds")
    bad("word_first_row", b"1,x\n", "row 1, column 2, byte 2: 'x' is not a number, other fields of the first row are")
    bad("header_twice", b"a,b\na,b\n", "row 2, column 2, byte 6: 'b' is not a number")
    bad("empty_field", b"1,,3\n", "row 1, column 2, byte 2: '' is not a number")
    bad("empty_last_field", b"1,2\n3,", "row 2, column 2, byte 6: '' is not a number")
    bad("empty_row", b"1,2\n\n3,4\n", "row 2, column 1, byte 4: '' is not a number")
    bad("empty_row_last", b"1\n2\n\n", "row 3, column 1")
    bad("row_short", b"1,2\n3\n", "row 2, column 1, byte 4: the row has 1 columns, the first has 2")
    bad("row_long", b"1,2\n3,4,5\n", "row 2, column 3, byte 8: the row has more columns than the first, which has 2")
    bad("row_long_header", b"a\n1,2\n", "the row has more columns than the first, which has 1")
    bad("comma_last", b"1,2,\n", "row 1, column 3, byte 4: '' is not a number")
    bad("semicolons", b"1;2\n3;4\n", "'3;4' is not a number")
    bad("semicolons_one_row", b"5\n1;2\n", "'1;2' is not a number")
    bad("decimal_comma", b'"1,5"\n2\n3,5\n', "the row has more columns than the first")
    bad("two_numbers", b"1\n1 2\n", "'1 2' is not a number")
    bad("hexadecimal", b"1\n0x10\n", "'0x10' is not a number")
    bad("hexadecimal_exponent", b"1\n1p3\n", "'1p3' is not a number")
    bad("exponent_without_digits", b"1\n1e\n", "'1e' is not a number")
    bad("two_points", b"1\n1.2.3\n", "'1.2.3' is not a number")
    bad("two_signs", b"1\n+-3\n", "'+-3' is not a number")
    bad("only_sign", b"1\n-\n", "'-' is not a number")
    bad("only_point", b"1\n.\n", "'.' is not a number")
    bad("thousands", b"1\n1'000\n", "'1\\x27000' is not a number")
    bad("overflow", b"1\n1e999\n", "'1e999' is not a number that float64 holds")
    bad("overflow_negative", b"1\n-1e400\n", "'-1e400' is not a number that float64 holds")
    bad("percent", b"1\n50%\n", "'50%' is not a number")
    bad("quote_inside", b'1,2"3\n', "row 1, column 2, byte 3: a quote inside a field without quotes")
    bad("quote_not_closed", b'1,"2\n', "row 1, column 2, byte 2: the closing quote is missing")
    bad("quote_not_closed_escaped", b'1,"2""', "the closing quote is missing")
    bad("quote_text_after", b'"1"2,3\n', "row 1, column 1, byte 3: text after the closing quote")
    bad("quote_space_after", b'"1" ,3\n', "text after the closing quote")
    bad("quote_only", b'"', "the closing quote is missing")
    bad("utf8_stray_byte", b"a,\xff\n", "row 1, column 2, byte 2: not valid UTF-8")
    bad("utf8_quoted", b'"a\xc3"\n', "not valid UTF-8")
    bad("utf16", "1,2\n".encode("utf-16"), "a control character: not a csv file")
    bad("control_character", b"1,2\n\x013,4\n", "row 2, column 1, byte 4: a control character")
    bad("nul", b"1,\x002\n", "a control character: not a csv file")
    bad("carriage_return_only", b"1,2\r3,4\r", "a control character")
    bad("field_too_long", b"1\n" + b"1" * 1100 + b"\n", "the field is longer than 1024 bytes")
    bad("field_too_long_quoted", b'1\n"' + b"1" * 1100 + b'"\n', "the field is longer than 1024 bytes")
    bad("escape_sequence", b"1\n\x1b[31m5\n", "a control character")
    bad("del_character", b"1\n5\x7f\n", "'5\\x7f' is not a number")
    bad("png_by_another_name", b"\x89PNG\r\n\x1a\n", "not valid UTF-8")
    folder.close()


# ---- png -----------------------------------------------------------------------------------------------------------

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind, data=b"", crc=None):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data) if crc is None else crc)


def ihdr(width=2, height=2, depth=8, colour=0, compression=0, filter_=0, interlace=0):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, compression, filter_, interlace))


def rows(width=2, height=2, channels=1, filter_=0):
    return b"".join(bytes([filter_]) + bytes((y * width * channels + x) % 256 for x in range(width * channels)) for y in range(height))


def png(*chunks):
    return SIGNATURE + b"".join(chunks)


def idat(data):
    return chunk(b"IDAT", zlib.compress(data, 9))


END = chunk(b"IEND")


def make_png():
    folder = Folder("png", ".png")
    for name, colour, channels in (("grey", 0, 1), ("rgb", 2, 3), ("grey_alpha", 4, 2), ("rgba", 6, 4)):
        folder.add("valid_" + name, png(ihdr(colour=colour), idat(rows(channels=channels)), END))
    folder.add("valid_filters", png(ihdr(2, 5), idat(b"".join(bytes([f, 9, 7]) for f in range(5))), END))
    folder.add("valid_interlaced", png(ihdr(2, 2, interlace=1), idat(b"\0\1" b"\0\2" b"\0\3\4"), END))
    packed = zlib.compress(rows(), 9)
    folder.add("valid_split_idat", png(ihdr(), chunk(b"IDAT", packed[:3]), chunk(b"IDAT"), chunk(b"IDAT", packed[3:]), END))
    folder.add("valid_ancillary", png(ihdr(), chunk(b"gAMA", struct.pack(">I", 100000)), chunk(b"tEXt", b"a\0b"), idat(rows()), chunk(b"tIME", bytes(7)), END))

    folder.add("valid_suggested_palette", png(ihdr(colour=2), chunk(b"PLTE", bytes(6)), idat(rows(channels=3)), END))

    def bad(name, expected, *chunks):
        folder.add(name, png(*chunks), expected)

    image = idat(rows())
    good = png(ihdr(), image, END)
    folder.add("file_empty", b"", "does not begin with the PNG signature")
    folder.add("signature_cut", SIGNATURE[:6], "does not begin with the PNG signature")
    folder.add("signature_unix_newline", good.replace(b"\r\n", b"\n", 1), "does not begin with the PNG signature")
    bad("chunks_missing", "byte 8: the file ends before a chunk IEND")
    bad("end_missing", "the file ends before a chunk IEND", ihdr(), image)
    folder.add("end_cut", good[:-1], "the file ends before a chunk IEND")
    folder.add("text_after_end", good + b"PK\3\4", "byte 71: 4 bytes after the chunk IEND")
    bad("end_with_data", "holds data", ihdr(), image, chunk(b"IEND", b"x"))
    bad("chunk_length_past_file", "length 4096 is more than the", ihdr(), struct.pack(">I", 4096) + b"IDAT" + bytes(12))
    bad("chunk_length_max", "length 4294967295 is more than the", ihdr(), struct.pack(">I", 2**32 - 1) + b"IDAT" + bytes(12))
    bad("crc_ihdr", "chunk 'IHDR', byte 8: the checksum is wrong", ihdr()[:-1] + b"\0", image, END)
    bad("crc_idat", "chunk 'IDAT', byte 33: the checksum is wrong", ihdr(), chunk(b"IDAT", packed, 1), END)
    bad("crc_iend", "chunk 'IEND'", ihdr(), image, chunk(b"IEND", b"", 1))
    bad("crc_ancillary", "chunk 'tEXt'", ihdr(), chunk(b"tEXt", b"a\0b", 1), image, END)
    bad("ihdr_not_first", "chunk 'IDAT', byte 8: IHDR is not the first chunk", image, ihdr(), END)
    bad("ihdr_missing", "IHDR is not the first chunk", END)
    bad("ihdr_twice", "chunk 'IHDR', byte 33: appears twice", ihdr(), ihdr(), image, END)
    bad("ihdr_short", "has 12 bytes, not 13", chunk(b"IHDR", bytes(12)), image, END)
    bad("ihdr_long", "has 14 bytes, not 13", chunk(b"IHDR", bytes(14)), image, END)
    bad("size_zero_width", "size 0 x 2 is not from 1 x 1", ihdr(width=0), image, END)
    bad("size_zero_height", "size 2 x 0 is not from 1 x 1", ihdr(height=0), image, END)
    bad("size_above_limit", "size 1048577 x 2 is not from 1 x 1 to 1048576 x 1048576", ihdr(width=2**20 + 1), image, END)
    bad("size_max", "size 4294967295 x 4294967295 is not", ihdr(2**32 - 1, 2**32 - 1), image, END)
    bad("size_claims_terabyte", "bytes of pixels exceed the limit", ihdr(2**20, 2**20), image, END)
    bad("size_claims_megabytes", "the image ends after 6 of its 1001000 bytes", ihdr(1000, 1000), image, END)
    bad("size_wide_row", "the image ends after 6 of its 1048577 bytes", ihdr(2**20, 1), image, END)
    bad("depth_1", "1 bits of color type 0; only 8 bits", ihdr(depth=1), image, END)
    bad("depth_16", "16 bits of color type 0; only 8 bits", ihdr(depth=16), image, END)
    bad("depth_7", "7 bits of color type 0", ihdr(depth=7), image, END)
    bad("colour_palette", "8 bits of color type 3", ihdr(colour=3), chunk(b"PLTE", bytes(3)), image, END)
    bad("colour_unknown", "8 bits of color type 5", ihdr(colour=5), image, END)
    bad("compression_unknown", "compression, filter or interlace method is unknown", ihdr(compression=1), image, END)
    bad("filter_method_unknown", "compression, filter or interlace method is unknown", ihdr(filter_=1), image, END)
    bad("interlace_unknown", "compression, filter or interlace method is unknown", ihdr(interlace=2), image, END)
    bad("critical_chunk_unknown", "chunk 'ABCD', byte 33: this chunk is needed to read the image", ihdr(), chunk(b"ABCD"), image, END)
    bad("chunk_name_control", "chunk '\\x1b[2J'", ihdr(), chunk(b"\x1b[2J"), image, END)
    bad("idat_missing", "the image ends after 0 of its 6 bytes", ihdr(), END)
    bad("idat_empty", "the image ends after 0 of its 6 bytes", ihdr(), chunk(b"IDAT"), END)
    bad("idat_apart", "is not next to the IDAT before", ihdr(), chunk(b"IDAT", packed[:3]), chunk(b"tEXt", b"a\0b"), chunk(b"IDAT", packed[3:]), END)
    bad("idat_cut", "the image ends after", ihdr(), chunk(b"IDAT", packed[:-4]), END)
    bad("idat_corrupt", "chunk 'IDAT', byte 33: the compressed data is corrupt", ihdr(), chunk(b"IDAT", b"\xff" * 20), END)
    bad("idat_checksum", "the compressed data is corrupt", ihdr(), chunk(b"IDAT", packed[:-1] + bytes([packed[-1] ^ 1])), END)
    bad("idat_raw_deflate", "the compressed data is corrupt", ihdr(), chunk(b"IDAT", deflate(rows())), END)
    bad("idat_left_over", "4 bytes after the end of the image", ihdr(), chunk(b"IDAT", packed + b"abcd"), END)
    bad("idat_second_image", "data after the end of the image", ihdr(), image, image, END)
    bad("idat_one_row", "the image ends after 3 of its 6 bytes", ihdr(), idat(rows(height=1)), END)
    bad("idat_three_rows", "inflates to more than the 6 bytes of the image", ihdr(), idat(rows(height=3)), END)
    bad("idat_bomb", "inflates to more than the 6 bytes of the image", ihdr(), idat(bytes(1_000_000)), END)
    bad("filter_5", "a row has an unknown filter", ihdr(), idat(rows(filter_=5)), END)
    bad("filter_255_second_row", "a row has an unknown filter", ihdr(), idat(b"\0\1\2\xff\1\2"), END)
    bad("interlaced_filter", "a row has an unknown filter", ihdr(interlace=1), idat(b"\0\1" b"\x09\2" b"\0\3\4"), END)
    bad("interlaced_as_plain", "the image ends after 6 of its 7 bytes", ihdr(interlace=1), image, END)
    folder.close()


# ---- GGUF ----------------------------------------------------------------------------------------------------------

U8, U32, F32, BOOL, TEXT, ARRAY, U64 = 0, 4, 6, 7, 8, 9, 10


def gguf_text(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(raw)) + raw


def gguf_key(key, kind, value):
    return gguf_text(key) + struct.pack("<I", kind) + value


def gguf_tensor(name, dims, kind=0, offset=0, rank=None):
    rank = len(dims) if rank is None else rank
    return gguf_text(name) + struct.pack(f"<I{len(dims)}QIQ", rank, *dims, kind, offset)


def gguf(keys=(), tensors=(), data=b"", version=3, magic=b"GGUF", alignment=32, counts=None):
    head = magic + struct.pack("<IQQ", version, *(counts or (len(tensors), len(keys)))) + b"".join(keys) + b"".join(tensors)
    return head + b"\0" * (-len(head) % alignment) + data


def make_gguf():
    folder = Folder("gguf", ".gguf")
    name_key = gguf_key("general.architecture", TEXT, gguf_text("llama"))
    words = gguf_key("tokenizer.ggml.tokens", ARRAY, struct.pack("<IQ", TEXT, 3) + gguf_text("a") + gguf_text("") + gguf_text("b"))
    numbers = gguf_key("scores", ARRAY, struct.pack("<IQ3f", F32, 3, 1, 2, 3))
    block = bytes(range(34))

    def bad(name, expected, **parts):
        folder.add(name, gguf(**parts), expected)

    folder.add("valid_empty", gguf())
    folder.add("valid_version_2", gguf([name_key], version=2))
    folder.add("valid_keys", gguf([name_key, words, numbers, gguf_key("flag", BOOL, b"\1"), gguf_key("n", U64, bytes(8))]))
    folder.add("valid_tensors", gguf([name_key], [gguf_tensor("a", (2, 3)), gguf_tensor("b.weight", (32, 1), 8, 32),
                                                  gguf_tensor("s", (), 0, 96)], bytes(24) + bytes(8) + block + bytes(30) + bytes(4)))
    folder.add("valid_alignment", gguf([gguf_key("general.alignment", U32, struct.pack("<I", 64))],
                                       [gguf_tensor("a", (2,)), gguf_tensor("b", (2,), 0, 64)], bytes(72), alignment=64))
    folder.add("valid_type_of_tomorrow", gguf([], [gguf_tensor("a", (7,), 99)], bytes(32)))
    folder.add("valid_empty_tensor", gguf([], [gguf_tensor("a", (0, 5))], b""))

    folder.add("file_empty", b"", "0 bytes are too few for a GGUF file")
    folder.add("file_short", b"GGUF" + bytes(19), "23 bytes are too few")
    bad("magic", "does not begin with 'GGUF'", magic=b"GGML")
    bad("version_0", "version is 0; it must be 2 or 3", version=0)
    bad("version_1", "version is 1; it must be 2 or 3", version=1)
    bad("version_4", "version is 4; it must be 2 or 3", version=4)
    bad("big_endian", "the file is big-endian", version=3 << 24)
    bad("tensors_too_many", "1000001 tensors; the limit is 1000000", counts=(1_000_001, 0))
    bad("tensors_beyond_file", "5 tensors; the limit is 1000000, and the file has room for 0", counts=(5, 0))
    bad("tensors_max", "18446744073709551615 tensors", counts=(2**64 - 1, 0))
    bad("keys_too_many", "1000001 keys", counts=(0, 1_000_001))
    bad("keys_max", "18446744073709551615 keys", counts=(0, 2**64 - 1))
    bad("keys_cut", "the file ends here", keys=[name_key], counts=(0, 3), alignment=1)
    bad("key_long", "a text of 65536 bytes; the limit is 65535", keys=[gguf_key("k" * 65536, U8, b"\0")])
    bad("key_length_max", "a text of 18446744073709551615 bytes", keys=[struct.pack("<Q", 2**64 - 1) + bytes(40)])
    bad("key_not_utf8", "the key is not valid UTF-8", keys=[gguf_key(b"\xff\xfe", U8, b"\0")])
    bad("key_twice", "key 'k', byte 38: appears twice", keys=[gguf_key("k", U8, b"\0"), gguf_key("k", U8, b"\1")])
    bad("key_control", "key '\\x1b[2J'", keys=[gguf_key("\x1b[2J", 13, b"\0" * 9)])
    bad("type_13", "key 'k', byte 33: type 13 is none of the 13 types of values", keys=[gguf_key("k", 13, bytes(8))])
    bad("type_max", "type 4294967295 is none", keys=[gguf_key("k", 2**32 - 1, bytes(8))])
    bad("value_cut", "an array of 1 elements", keys=[gguf_text("key") + struct.pack("<I", U64) + bytes(2)], alignment=1)
    bad("boolean_2", "a boolean that is not 0 or 1", keys=[gguf_key("k", BOOL, b"\2")])
    bad("booleans_255", "a boolean that is not 0 or 1", keys=[gguf_key("k", ARRAY, struct.pack("<IQ", BOOL, 2) + b"\1\xff")])
    bad("text_beyond_file", "a text of 1000 bytes; the limit is", keys=[gguf_key("k", TEXT, struct.pack("<Q", 1000) + bytes(8))])
    bad("text_max", "a text of 18446744073709551615 bytes", keys=[gguf_key("k", TEXT, struct.pack("<Q", 2**64 - 1) + bytes(8))])
    bad("array_of_arrays", "an array of arrays", keys=[gguf_key("k", ARRAY, struct.pack("<IQ", ARRAY, 1) + bytes(20))])
    bad("array_type", "type 77 is none", keys=[gguf_key("k", ARRAY, struct.pack("<IQ", 77, 1) + bytes(20))])
    bad("array_beyond_file", "an array of 1000 elements", keys=[gguf_key("k", ARRAY, struct.pack("<IQ", U8, 1000) + bytes(20))])
    bad("array_max_u8", "an array of 18446744073709551615 elements", keys=[gguf_key("k", ARRAY, struct.pack("<IQ", U8, 2**64 - 1))])
    bad("array_max_u64", "an array of 2305843009213693952 elements", keys=[gguf_key("k", ARRAY, struct.pack("<IQ", U64, 2**61))])
    bad("array_max_text", "an array of 2305843009213693952 elements", keys=[gguf_key("k", ARRAY, struct.pack("<IQ", TEXT, 2**61) + bytes(64))])
    bad("array_text_cut", "the file ends here", keys=[gguf_key("k", ARRAY, struct.pack("<IQQ", TEXT, 2, 3) + b"abc" + struct.pack("<Q", 90))])
    for number in (0, 3, 12, 131072):
        bad(f"alignment_{number}", "is not a power of two up to 65536", keys=[gguf_key("general.alignment", U32, struct.pack("<I", number))])
    bad("alignment_text", "is not a power of two", keys=[gguf_key("general.alignment", TEXT, gguf_text("32"))])
    bad("alignment_u64", "is not a power of two", keys=[gguf_key("general.alignment", U64, struct.pack("<Q", 32))])
    bad("tensor_cut", "the file ends here", tensors=[gguf_tensor("a", (2,))[:-4] + b""], alignment=1)
    bad("tensor_name_long", "a text of 65536 bytes; the limit is 65535", tensors=[gguf_tensor("t" * 65536, (1,))])
    bad("tensor_name_not_utf8", "the name is not valid UTF-8", tensors=[gguf_tensor(b"\xc0\x80", (1,))], data=bytes(4))
    bad("tensor_twice", "tensor 'a', byte 57: appears twice", tensors=[gguf_tensor("a", (1,)), gguf_tensor("a", (1,), 0, 32)], data=bytes(64))
    bad("rank_5", "5 dimensions; the limit is 4", tensors=[gguf_tensor("a", (1, 1, 1, 1, 1))], data=bytes(4))
    bad("rank_max", "4294967295 dimensions", tensors=[gguf_tensor("a", (1,), rank=2**32 - 1)], data=bytes(64))
    bad("dimension_large", "dimension 0 is 281474976710657, the limit is 281474976710656", tensors=[gguf_tensor("a", (2**48 + 1,))])
    bad("dimensions_overflow", "the shape needs more than 2^64 - 1 bytes", tensors=[gguf_tensor("a", (2**40, 2**40))])
    bad("claims_1_tib", "are beyond the data", tensors=[gguf_tensor("a", (2**38,))], data=bytes(64))
    bad("rows_no_blocks_q8_0", "rows of 33 are not a multiple of the blocks of Q8_0, 32", tensors=[gguf_tensor("a", (33,), 8)], data=bytes(64))
    bad("rows_no_blocks_q4_k", "rows of 32 are not a multiple of the blocks of Q4_K, 256", tensors=[gguf_tensor("a", (32, 8), 12)], data=bytes(144))
    bad("offset_unaligned", "offset 4 is not a multiple of the alignment, 32", tensors=[gguf_tensor("a", (1,), 0, 4)], data=bytes(64))
    bad("offset_beyond", "are beyond the data", tensors=[gguf_tensor("a", (1,), 0, 64)], data=bytes(64))
    bad("offset_max", "are beyond the data", tensors=[gguf_tensor("a", (1,), 0, 2**64 - 32)], data=bytes(64))
    bad("data_cut", "bytes 0 to 0 + 16 are beyond the data, which has 15", tensors=[gguf_tensor("a", (4,))], data=bytes(15))
    bad("data_cut_type_of_tomorrow", "are beyond the data", tensors=[gguf_tensor("a", (4,), 99, 32)], data=bytes(16))
    bad("overlap", "begins at 32, inside a tensor that ends at 64", tensors=[gguf_tensor("a", (16,)), gguf_tensor("b", (8,), 0, 32)], data=bytes(64))
    bad("overlap_same", "inside a tensor that ends at", tensors=[gguf_tensor("a", (8,)), gguf_tensor("b", (8,))], data=bytes(64))
    folder.add("padding_cut", gguf([], [gguf_tensor("a", (0,))], alignment=1), "the file ends before its data begins")
    folder.close()


# ---- Configurations and tokenizers -----------------------------------------------------------------------------------
# Places for the fuzzers to start from, cut from the models that the tests run (tests/model);
# tests/model/strangers.json lists the errors of untrusted files.

MODELS = CORPUS.parent.parent / "model"
GGUF_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def gguf_value_end(data, at, kind):
    """Where a value ends that begins at `at`."""
    if kind == TEXT:
        return at + 8 + struct.unpack_from("<Q", data, at)[0]
    if kind != ARRAY:
        return at + GGUF_SIZES[kind]
    element, count = struct.unpack_from("<IQ", data, at)
    at += 12
    if element != TEXT:
        return at + count * GGUF_SIZES[element]
    for _ in range(count):
        at = gguf_value_end(data, at, TEXT)
    return at


def without_tensors(path, keep):
    """A GGUF file of the same keys, those that `keep` takes."""
    data = path.read_bytes()
    at, keys = 24, []
    for _ in range(struct.unpack_from("<Q", data, 16)[0]):
        begin, at = at, gguf_value_end(data, at, TEXT)
        name = data[begin + 8:at].decode()
        at = gguf_value_end(data, at + 4, struct.unpack_from("<I", data, at)[0])
        if keep(name):
            keys.append(data[begin:at])
    return gguf(keys)


def configurations():
    """The models' configurations, without what no reader of them asks for."""
    idle = ("architectures", "dropout", "initializer", "_token_id", "transformers_version", "use_cache", "dtype", "chunk_size")
    for path in sorted(MODELS.glob("families/*/config.json")) + sorted(MODELS.glob("families/older/*.json")):
        values = {k: v for k, v in json.loads(path.read_text()).items() if not any(word in k for word in idle)}
        name = path.parent.name if path.name == "config.json" else path.stem
        yield f"{name}.json", json.dumps(values, separators=(",", ":"))


def make_config():
    folder = Folder("config", "")
    for name, text in configurations():
        (folder.path / name).write_text(text)
    for path in sorted(MODELS.glob("families/*/model.gguf")):
        (folder.path / f"{path.parent.name}.gguf").write_bytes(without_tensors(path, lambda name: "tokenizer" not in name))
    print("config:", len(list(folder.path.iterdir())))


def make_model():
    """The same configurations, for which the target makes weights, and whole GGUF files."""
    folder = Folder("model", "")
    for name, text in configurations():
        (folder.path / name).write_text(text)
    for path in sorted(MODELS.glob("families/*/model.gguf")):
        if path.stat().st_size < 20000:
            (folder.path / f"{path.parent.name}.gguf").write_bytes(path.read_bytes())
    print("model:", len(list(folder.path.iterdir())))


def make_tokenizer():
    folder = Folder("tokenizer", "")
    for path in sorted(MODELS.glob("tokenizers/*.json")):
        if "expected" not in path.name:
            (folder.path / path.name).write_bytes(path.read_bytes())
    for path in sorted(MODELS.glob("tokenizers/*.gguf")):
        (folder.path / path.name).write_bytes(without_tensors(path, lambda name: True))
    for number, (text, _) in enumerate(json.loads((MODELS / "strangers.json").read_text())["tokenizer"]):
        if len(text) > 100 and number % 3 == 0:
            (folder.path / f"stranger_{number}.json").write_text(text)
    print("tokenizer:", len(list(folder.path.iterdir())))


# ---- Sessions, learned models, ONNX nodes ----------------------------------------------------------------------------


def make_session():
    """Sessions of tests/sessions, addresses, and a file of tensors of every rank that sessions name."""
    folder = Folder("session", "")
    for path in sorted(CORPUS.parent.parent.glob("sessions/*.fovea")):
        if "level" in path.name or any(word in path.name for word in ("tensors", "kept", "edits", "mask", "task", "painted", "names")):
            (folder.path / path.name).write_bytes(path.read_bytes())
    shapes = {"q": (2, 3, 4), "k": (1, 5, 4), "v": (1, 5, 2), "none": (1, 0, 4), "no_heads": (0, 3, 4), "no_width": (2, 3, 0),
              "rank0": (), "rank1": (4,), "rank2": (3, 4), "batch": (1, 2, 3, 4), "batches": (2, 2, 3, 4), "rank5": (1, 1, 1, 3, 4)}
    header, data = {}, b""
    for name, shape in shapes.items():
        count = math.prod(shape)
        header[name] = entry(shape=shape, offsets=(len(data), len(data) + 4 * count))
        data += struct.pack(f"<{count}f", *(n / 8 for n in range(count)))
    header["half"] = entry("F16", (1, 2, 4), (len(data), len(data) + 16))
    (folder.path / "tensors.safetensors").write_bytes(safetensors(header, data + bytes(16)))
    tensor = lambda name: {"path": "tensors.safetensors", "name": name, "sha256": "0" * 64}
    for name, parts in {"ranks": ("rank2", "batch", "rank1"), "empty": ("none", "no_heads", "no_width"), "more": ("rank0", "rank5", "batches"),
                        "half": ("half", "half", "half"), "files": ("q", "k", "v")}.items():
        session = {"format": "fovea-session", "version": 1, "state": {"level": 3, "mask": "causal", "heads": 2},
                   "tensors": {part: tensor(of) for part, of in zip("qkv", parts)}}
        (folder.path / f"in_{name}.fovea").write_text(json.dumps(session))
    addresses = {"level": "v=1&level=3&text=The+cat+sat&mask=causal", "window": "#v=1&level=7&len=9&mask=window&win=2&heads=4&head=3",
                 "task": "v=1&level=3&task=sort&text=3+1+2+%3D&off=1&stage=logits", "escape": "v=1&level=2&text=%e2%82%ac%ff%2&x=&=1&&",
                 "dropout": "v=1&level=5&p=0.5&dseed=7&rng=counter&stage=dropped", "edits": "v=1&level=4&edits=inputs+0+1+2.5%2Cw_query+1+1+-3"}
    for name, text in addresses.items():
        (folder.path / f"{name}.address").write_text(text)
    print("session:", len(list(folder.path.iterdir())))


def make_learned():
    """Inputs for learned_fuzz.cpp: the metadata and shapes of the models of lens/model/learned, with fewer tokens and
    smaller sides."""
    folder = Folder("learned", "")
    for path in sorted((CORPUS.parent.parent.parent / "lens/model/learned").glob("*.safetensors")):
        data = path.read_bytes()
        header = json.loads(data[8:8 + struct.unpack_from("<Q", data)[0]])
        notes = header.pop("__metadata__")
        words = notes["vocabulary"].split(" ")
        # All words of a small vocabulary, some of one that would fill the file.
        kept = words[:60]
        notes["vocabulary"] = " ".join(kept)
        notes["sample"] = " ".join(word for word in notes["sample"].split(" ") if word in kept or notes.get("tokenizer"))[:60]
        side = lambda size: len(kept) if size == len(words) else min(size, 8)
        tensors = {name: [side(size) for size in tensor["shape"]] for name, tensor in header.items()}
        values = {"notes": notes, "tensors": tensors, "off": 1, "texts": [notes["sample"], "a b 3", ""]}
        (folder.path / f"{path.stem}.json").write_text(json.dumps(values))
    print("learned:", len(list(folder.path.iterdir())))


def make_onnx_node():
    """Inputs for onnx_node_fuzz.cpp."""
    folder = Folder("onnx_node", "")
    f32, i64, boolean, f16 = 1, 7, 9, 10

    def case(name, inputs, outputs=1, opset=24, op="Attention", **attributes):
        text = json.dumps({"op": op, "opset": opset, "attributes": attributes, "inputs": inputs, "outputs": outputs})
        (folder.path / f"{name}.json").write_text(text)

    q, k, v = [f32, 2, 4, 3, 8], [f32, 2, 2, 5, 8], [f32, 2, 2, 5, 6]
    case("plain", [q, k, v])
    case("flat", [[f16, 2, 3, 32], [f16, 2, 5, 16], [f16, 2, 5, 12]], q_num_heads=4, kv_num_heads=2, is_causal=1)
    case("scores", [q, k, v], 4, qk_matmul_output_mode=1, softcap=2.5, scale=0.25)
    case("mask", [q, k, v, [boolean, 2, 4, 3, 5]], 4, qk_matmul_output_mode=3)
    case("column", [q, k, v, [f32, 3, 1]])
    case("past", [q, k, v, None, [f32, 2, 2, 4, 8], [f32, 2, 2, 4, 6]], 3, is_causal=1)
    case("lengths", [q, k, v, None, None, None, [i64, 2]], 4)
    case("window", [q, k, v], left_window_size=2, right_window_size=0, opset=25)
    case("no_width", [[f32, 1, 1, 2**24, 0], [f32, 1, 1, 0, 0], [f32, 1, 1, 0, 8]])
    case("no_rows", [[f32, 2**20, 0, 2**20, 8], [f32, 2**20, 2**31 - 1, 0, 8], [f32, 2**20, 2**31 - 1, 0, 6]], 4)
    case("rotary", [[f32, 2, 4, 3, 8], [f32, 2, 3, 4], [f32, 2, 3, 4]], op="RotaryEmbedding", interleaved=1)
    case("rotary_table", [[f32, 2, 3, 32], [f32, 9, 2], [f32, 9, 2], [i64, 2, 3]], op="RotaryEmbedding", num_heads=4, rotary_embedding_dim=4)
    print("onnx_node:", len(list(folder.path.iterdir())))


if __name__ == "__main__":
    make_safetensors()
    make_npy()
    make_npz()
    make_csv()
    make_png()
    make_gguf()
    make_config()
    make_model()
    make_tokenizer()
    make_session()
    make_learned()
    make_onnx_node()
