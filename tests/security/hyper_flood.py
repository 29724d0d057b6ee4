"""HTTP/2 written by hand, just enough to keep many requests of one connection in flight."""
import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, WINDOW_UPDATE = 0, 1, 4, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(text):
    data = text.encode()
    length = bytes([len(data)]) if len(data) < 127 else bytes([127]) + varint(len(data) - 127)
    return length + data


def varint(number):
    out = b""
    while number >= 128:
        out += bytes([number % 128 + 128])
        number //= 128
    return out + bytes([number])


def head(path, authority="x"):
    # :method GET (2), :scheme https (7) from the static table; :path and :authority as literals.
    return bytes([0x82, 0x87]) + bytes([0x04]) + literal(path) + bytes([0x01]) + literal(authority)


def connect(context, port):
    context.set_alpn_protocols(["h2"])
    connection = context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=20))
    connection.sendall(PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, (1 << 31) - 1))
                       + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", (1 << 31) - 1 - 65535)))
    return connection


def status_of(block):
    """The :status of a header block, as our server encodes it: indexed, or a literal with an indexed name."""
    known = {0x88: 200, 0x89: 204, 0x8a: 206, 0x8b: 304, 0x8c: 400, 0x8d: 404, 0x8e: 500}
    if block and block[0] in known:
        return known[block[0]]
    if block and block[0] >= 0x80 and block[0] - 0x80 > 61:
        return "indexed"
    huffman = block[1] & 0x80
    text = block[2:2 + (block[1] & 0x7f)]
    # Digits in HPACK's code: 0 to 2 have five bits, 3 to 9 six.
    if not huffman:
        return int(text)
    bits = "".join(f"{byte:08b}" for byte in text)
    found = ""
    while len(found) < 3:
        if int(bits[:5], 2) <= 2:
            found, bits = found + str(int(bits[:5], 2)), bits[5:]
        else:
            found, bits = found + str(int(bits[:6], 2) - 0b011001 + 3), bits[6:]
    return int(found)


def lists(context, port, stop, in_flight=400):
    """Keeps `in_flight` lists open until `stop`; yields the status of each response."""
    connection, stream, opened, buffer = connect(context, port), 1, 0, b""
    indexed = None
    try:
        while not stop.is_set():
            batch = b""
            while opened < in_flight:
                batch += frame(HEADERS, END_STREAM | END_HEADERS, stream,
                               head(f"/api/v1/configmaps?labelSelector=a!=b&timeout={stream}s"))
                stream, opened = stream + 2, opened + 1
            if batch:
                connection.sendall(batch)
            received = connection.recv(1 << 16)
            if not received:
                return
            buffer += received
            while len(buffer) >= 9:
                length = int.from_bytes(buffer[:3], "big")
                if len(buffer) < 9 + length:
                    break
                kind, flags, payload, buffer = buffer[3], buffer[4], buffer[9:9 + length], buffer[9 + length:]
                if kind == HEADERS:
                    status = status_of(payload)
                    # Later responses refer to the table entry of the first one.
                    if status == "indexed":
                        status = indexed
                    elif status == 429:
                        indexed = 429
                    yield status
                elif kind == SETTINGS and not flags & ACK:
                    connection.sendall(frame(SETTINGS, ACK, 0))
                elif kind == 7:
                    return
                if kind in (DATA, HEADERS) and flags & END_STREAM:
                    opened -= 1
    except OSError:
        return
    finally:
        connection.close()
