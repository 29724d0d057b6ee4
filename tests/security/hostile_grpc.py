"""A gRPC server on a unix socket, written by hand so that it can send what no library sends."""
import os
import socket
import struct
import threading

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
# HPACK's Huffman code of the characters in method names.
_CODES = {5: (0b00000, "012aceiost"), 6: (0b010100, " %-./3456789=A_bdfghlmnpru"),
          7: (0b1011100, ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz")}
HUFFMAN = {format(first + i, f"0{length}b"): c for length, (first, text) in _CODES.items() for i, c in enumerate(text)}


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def varint(number):
    out = b""
    while number >= 128:
        out += bytes([number % 128 + 128])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    """One field of a protobuf message: a number, text, bytes, or a list of these."""
    if isinstance(value, list):
        return b"".join(field(number, each) for each in value)
    if isinstance(value, (bool, int)):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def fields(data):
    """The length-delimited fields of a message: (number, bytes)."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = number()
        if key & 7 == 0:
            number()
            continue
        size = number()
        yield key >> 3, data[at:at + size]
        at += size


def message(data):
    return b"\0" + struct.pack(">I", len(data)) + data


def text(block, at):
    """A string of a header block, and where it ends."""
    is_huffman, size = block[at] & 128, block[at] & 127
    at += 1
    if size == 127:
        shift = 0
        while True:
            byte = block[at]
            at += 1
            size += (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
    raw = block[at:at + size]
    if not is_huffman:
        return raw.decode(), at + size
    found, code = "", ""
    for bit in "".join(f"{byte:08b}" for byte in raw):
        code += bit
        if code in HUFFMAN:
            found, code = found + HUFFMAN[code], ""
    return found, at + size


def path_of(block):
    """The :path of a request. Our SETTINGS forbid a dynamic table, so it is a literal with the static name 4."""
    at = 0
    while at < len(block):
        byte = block[at]
        if byte & 0x80:
            at += 1
        elif byte & 0xe0 == 0x20:
            at += 1
        else:
            index = byte & (0x3f if byte & 0x40 else 0x0f)
            at += 1
            if index == (0x3f if byte & 0x40 else 0x0f):
                while block[at] & 128:
                    at += 1
                at += 1
            if index == 0:
                _, at = text(block, at)
            value, at = text(block, at)
            if index in (4, 5):
                return value
    return ""


class Server:
    """Calls `handler(call)` on a thread for each call; it answers with the methods of `Call`, or never."""

    def __init__(self, path, handler):
        self.path, self.handler, self.closed, self.connections = str(path), handler, False, []
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        if os.path.lexists(self.path):
            os.unlink(self.path)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self.closed:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            read = connection.makefile("rb")
            assert read.read(len(PREFACE)) == PREFACE
            lock = threading.Lock()
            connection.sendall(frame(SETTINGS, 0, 0, struct.pack(">HI", 1, 0))
                               + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30)))
            heads, bodies, windows = {}, {}, {0: [65535]}
            while True:
                head = read.read(9)
                if len(head) < 9:
                    return
                size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
                stream = int.from_bytes(head[5:], "big") & (1 << 31) - 1
                payload = read.read(size)
                if kind == SETTINGS and not flags & ACK:
                    with lock:
                        connection.sendall(frame(SETTINGS, ACK, 0))
                elif kind == PING and not flags & ACK:
                    with lock:
                        connection.sendall(frame(PING, ACK, 0, payload))
                elif kind == HEADERS:
                    heads[stream], bodies[stream] = path_of(payload), b""
                elif kind == DATA:
                    bodies[stream] = bodies.get(stream, b"") + payload
                if kind in (HEADERS, DATA) and flags & END_STREAM and stream in heads:
                    call = Call(connection, lock, stream, heads.pop(stream), bodies.pop(stream)[5:])
                    threading.Thread(target=self._handle, args=(call,), daemon=True).start()
        except (OSError, ValueError, AssertionError):
            pass  # the node has hung up

    def _handle(self, call):
        try:
            self.handler(call)
        except OSError:
            pass

    def close(self):
        self.closed = True
        self.listener.close()
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            connection.close()
        if os.path.lexists(self.path):
            os.unlink(self.path)


class Call:
    """One request. `send` ignores flow control: the window of our client is large enough for what we send, and if
    it is not, that is part of the attack."""

    def __init__(self, connection, lock, stream, path, request):
        self.connection, self.lock, self.stream, self.path, self.request = connection, lock, stream, path, request
        self.method = path.rsplit("/", 1)[-1]
        self.started = False

    def raw(self, data):
        with self.lock:
            self.connection.sendall(data)

    def head(self):
        if not self.started:
            self.started = True
            # :status 200, content-type as literals.
            block = b"\x88" + b"\x0f\x10" + bytes([16]) + b"application/grpc"
            self.raw(frame(HEADERS, END_HEADERS, self.stream, block))

    def data(self, payload):
        """DATA frames without an end."""
        self.head()
        for at in range(0, len(payload), 16384):
            self.raw(frame(DATA, 0, self.stream, payload[at:at + 16384]))

    def send(self, body):
        self.data(message(body))

    def end(self, status=0, reason=""):
        self.head()
        literal = lambda data: bytes([len(data)]) + data
        block = b"\x00" + literal(b"grpc-status") + literal(str(status).encode())
        if reason:
            block += b"\x00" + literal(b"grpc-message") + literal(reason.encode()[:100])
        self.raw(frame(HEADERS, END_HEADERS | END_STREAM, self.stream, block))

    def answer(self, body):
        self.send(body)
        self.end()
