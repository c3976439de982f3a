"""Objects as CBOR (RFC 8949), which also programs in C++ read: None, bool, int, float, str, bytes,
list, tuple (read as list) and dict."""

import struct

_BREAK = object()
_DEEPEST = 100
_FLOAT16, _FLOAT32, _FLOAT64 = 25, 26, 27
_SIMPLE = {20: False, 21: True, 22: None, 23: None}


def encode(value):
    """Returns the bytes of an object. Errors: TypeError, for an object of another type."""
    parts = []
    _write(parts, value, 0)
    return b"".join(parts)


def _head(major, number):
    if number < 24:
        return bytes([major << 5 | number])
    for code, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if number < 1 << 8 * size:
            return bytes([major << 5 | code]) + number.to_bytes(size, "big")
    raise OverflowError(f"{number}: want integers of at most 64 bits")


def _write(parts, value, depth):
    if depth > _DEEPEST:
        raise ValueError(f"an object in more than {_DEEPEST} others")
    if value is None or value is False or value is True:
        parts.append(b"\xf6" if value is None else b"\xf5" if value else b"\xf4")
    elif isinstance(value, int):
        parts.append(_head(0, value) if value >= 0 else _head(1, -1 - value))
    elif isinstance(value, float):
        parts.append(b"\xfb" + struct.pack(">d", value))
    elif isinstance(value, str):
        text = value.encode()
        parts += (_head(3, len(text)), text)
    elif isinstance(value, (bytes, bytearray)):
        parts += (_head(2, len(value)), bytes(value))
    elif isinstance(value, (list, tuple)):
        parts.append(_head(4, len(value)))
        for item in value:
            _write(parts, item, depth + 1)
    elif isinstance(value, dict):
        parts.append(_head(5, len(value)))
        for key, item in value.items():
            _write(parts, key, depth + 1)
            _write(parts, item, depth + 1)
    else:
        raise TypeError(
            f"{type(value).__name__} is no type of CBOR (None, bool, int, float, str, bytes, list, "
            "tuple, dict): use_pickle=True sends any object, to ranks that trust each other"
        )


def decode(data):
    """Returns the object of `data`. Errors: ValueError if it is not one whole object."""
    reader = _Reader(data)
    try:
        value = reader.value(0)
    except (IndexError, struct.error, UnicodeDecodeError, TypeError) as error:
        raise ValueError(f"no object in CBOR: {error}") from None
    if value is _BREAK or reader.at != len(data):
        raise ValueError("no object in CBOR: it ends too late")
    return value


class _Reader:
    def __init__(self, data):
        self._data = data
        self.at = 0

    def _take(self, size):
        if size > len(self._data) - self.at:
            raise IndexError("it ends too early")
        self.at += size
        return self._data[self.at - size : self.at]

    # None: of indefinite length.
    def _number(self, code):
        if code < 24:
            return code
        if code == 31:
            return None
        if code > 27:
            raise ValueError("no object in CBOR: a reserved length")
        return int.from_bytes(self._take(1 << code - 24), "big")

    def _items(self, count, depth):
        if count is None:
            while (item := self.value(depth)) is not _BREAK:
                yield item
        else:
            for _ in range(count):
                yield self.value(depth)

    def _chunks(self, count):
        return self._take(count) if count is not None else b"".join(self._items(None, _DEEPEST))

    def value(self, depth):
        if depth > _DEEPEST:
            raise ValueError("no object in CBOR: too deep")
        head = self._take(1)[0]
        major, code = head >> 5, head & 31
        if major == 7:
            return self._special(code)
        number = self._number(code)
        if major == 0:
            return number
        if major == 1:
            return -1 - number
        if major == 2:
            return bytes(self._chunks(number))
        if major == 3:
            if number is None:
                return "".join(self._items(None, _DEEPEST))
            return str(self._take(number), "utf-8")
        if major == 4:
            return list(self._items(number, depth + 1))
        if major == 5:
            items = self._items(None if number is None else 2 * number, depth + 1)
            return dict(zip(items, items))
        return self.value(depth + 1)  # a tag says more about the object that follows

    def _special(self, code):
        if code in _SIMPLE:
            return _SIMPLE[code]
        if code == _FLOAT16:
            return struct.unpack(">e", self._take(2))[0]
        if code == _FLOAT32:
            return struct.unpack(">f", self._take(4))[0]
        if code == _FLOAT64:
            return struct.unpack(">d", self._take(8))[0]
        if code == 31:
            return _BREAK
        raise ValueError(f"no object in CBOR: simple value {code}")
