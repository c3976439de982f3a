"""Errors of librankrun as those of torch.distributed, with unchanged texts."""

from torch import distributed as dist

from rankrun import _native

_CLASSES = (
    (_native.DistNetworkError, dist.DistNetworkError),
    (_native.DistStoreError, dist.DistStoreError),
)

NativeError = _native.DistError


def translated(error):
    """Returns the exception of torch.distributed for a NativeError."""
    for native, own in _CLASSES:
        if isinstance(error, native):
            return own(str(error))
    return dist.DistBackendError(str(error))


def call(function, *arguments):
    """Calls a function of _native."""
    try:
        return function(*arguments)
    except NativeError as error:
        raise translated(error) from None
