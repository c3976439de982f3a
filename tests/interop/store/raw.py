"""A client of the store's protocol (docs/store-protocol.md) that sends exactly the bytes of a test."""
import socket
import struct

VALIDATE = b"\0" + struct.pack("<I", 0x3C85F7CE)
OPERATIONS = {"set": 1, "compare_set": 2, "get": 3, "add": 4, "check": 5, "wait": 6, "num_keys": 7,
              "delete_key": 8, "append": 9, "multi_get": 10, "multi_set": 11, "cancel_wait": 12,
              "ping": 13, "queue_push": 14, "queue_pop": 15, "queue_len": 16, "list_keys": 17,
              "barrier": 18}


def field(value):
    if isinstance(value, int):
        return struct.pack("<q", value)
    if isinstance(value, list):
        return struct.pack("<Q", len(value)) + b"".join(map(field, value))
    if isinstance(value, tuple):
        return b"".join(map(field, value))
    value = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(value)) + value


def request(name, *fields):
    """Encodes an operation with integers, strings, lists of strings or lists of pairs."""
    return bytes([OPERATIONS[name]]) + b"".join(map(field, fields))


class RawClient:
    """A connection. `answers` ends with a PING: all bytes before its reply were sent earlier."""

    def __init__(self, server, validate=True):
        self._socket = socket.create_connection((server.host, server.port), timeout=20)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._nonce = 0x5EED0000
        if validate:
            self.send(VALIDATE)

    def send(self, data):
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # answers() reports it

    def answers(self):
        """Returns all bytes that the server has sent, in hexadecimal, and whether it has closed."""
        self._nonce += 1
        nonce = struct.pack("<I", self._nonce)
        self.send(bytes([OPERATIONS["ping"]]) + nonce)
        data = b""
        while not data.endswith(nonce):
            try:
                more = self._socket.recv(65536)
            except ConnectionResetError:
                more = b""
            if not more:
                return data.hex() + " closed"
            data += more
        return data[: -len(nonce)].hex()

    def is_open(self):
        """Returns whether the connection still seems open."""
        self._socket.setblocking(False)
        try:
            return self._socket.recv(1) != b""
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False

    def receive(self, count):
        data = b""
        while len(data) < count:
            more = self._socket.recv(count - len(data))
            assert more, "the server has closed the connection"
            data += more
        return data

    def receive_number(self):
        return struct.unpack("<q", self.receive(8))[0]

    def receive_value(self):
        return self.receive(self.receive_number())

    def close(self):
        self._socket.close()


def clear(server, queues):
    """Deletes all keys and empties `queues`."""
    client = RawClient(server)
    client.send(request("list_keys"))
    for key in [client.receive_value() for _ in range(client.receive_number())]:
        client.send(request("delete_key", key))
        assert client.receive_number() == 1, key
    for queue in queues:
        length = None
        while length != 0:
            client.send(request("queue_pop", queue))
            length = client.receive_number()
            if length:
                client.receive_value()
    client.close()
