"""A system bus with logind on it, for one client: gives delay locks and announces shutdowns."""
import os
import select
import socket
import struct
import threading


def _pad(data, size):
    return data + b"\0" * (-len(data) % size)


def _field(code, kind, value):
    head = bytes([code, 1]) + kind.encode() + b"\0"
    if kind == "u":
        return head + struct.pack("<I", value)
    if kind == "g":
        return head + bytes([len(value)]) + value.encode() + b"\0"
    return head + struct.pack("<I", len(value)) + value.encode() + b"\0"


def _message(kind, serial, fields, body=b""):
    packed = b""
    for each in fields:
        packed = _pad(packed, 8) + _field(*each)
    return _pad(b"l" + bytes([kind, 0, 1]) + struct.pack("<III", len(body), serial, len(packed)) + packed, 8) + body


class FakeLogind(threading.Thread):
    def __init__(self, path):
        super().__init__(daemon=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(4)
        self.address = f"unix:path={path}"
        self.locked = threading.Event()
        self.peer = None
        self.lock = None  # our end of the last lock
        self.serial = 0

    def run(self):
        while True:
            self.peer = self.listener.accept()[0]
            try:
                self._serve()
            except (ConnectionError, OSError):
                pass

    def shutdown(self):
        self._send(4, [(1, "o", "/org/freedesktop/login1"), (2, "s", "org.freedesktop.login1.Manager"),
                       (3, "s", "PrepareForShutdown"), (8, "g", "b")], struct.pack("<I", 1))

    def is_released(self):
        return bool(select.select([self.lock], [], [], 0)[0])

    def _send(self, kind, fields, body=b"", descriptors=()):
        self.serial += 1
        socket.send_fds(self.peer, [_message(kind, self.serial, fields, body)], list(descriptors))

    def _serve(self):
        data = b""
        while b"BEGIN\r\n" not in data:
            part = self.peer.recv(4096)
            if not part:
                return
            data += part
            if data.endswith(b"\r\n"):
                if b"BEGIN\r\n" not in data:
                    self.peer.sendall(b"AGREE_UNIX_FD\r\n" if b"NEGOTIATE" in data else b"OK 1\r\n")
        data = data.split(b"BEGIN\r\n", 1)[1]
        while True:
            while len(data) < 16 or len(data) < self._length(data):
                part = self.peer.recv(4096)
                if not part:
                    return
                data += part
            length = self._length(data)
            self._answer(data[:length])
            data = data[length:]

    @staticmethod
    def _length(data):
        body, _, fields = struct.unpack_from("<III", data, 4)
        return (16 + fields + 7) // 8 * 8 + body

    def _answer(self, message):
        serial = struct.unpack_from("<I", message, 8)[0]
        reply = (5, "u", serial)
        if b"Inhibit\0" in message:
            self.lock, theirs = os.pipe()
            self._send(2, [reply, (8, "g", "h"), (9, "u", 1)], struct.pack("<I", 0), [theirs])
            os.close(theirs)
            self.locked.set()
        elif b"InhibitDelayMaxUSec" in message:
            self._send(2, [reply, (8, "g", "v")], b"\x01t\0\0\0\0\0\0" + struct.pack("<Q", 3_600_000_000))
        else:
            self._send(2, [reply])
