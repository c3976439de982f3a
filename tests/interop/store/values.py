"""A step with the operations that old and new PyTorch share."""
from side_by_side import step

EVERY_BYTE = bytes(range(256))


@step
def values_of_all_bytes(store):
    values = [EVERY_BYTE, b"\0", b"\0\0\0", b"", "", "grüße", "日本語", b"\xff\xfe", "a\r\nb"]
    for i, value in enumerate(values):
        store.set(f"value{i}", value)
    return [store.get(f"value{i}") for i in range(len(values))]
