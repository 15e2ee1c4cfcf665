"""Archives: zip files whose members are stored as they are, which any program for zip files reads.

A Writer only appends, so that it can write to whatever takes bytes; a Reader goes from one member to the next, from the
place where the file stands, and leaves the file behind the archive. PyTorch's archives tell the sizes of members behind
them: these are found through the directory at the end of the file. Each size that a file claims is compared with the
length of the file before anything of that size is made.
"""

from __future__ import annotations

import io
import os
import struct
import zlib

ALIGNMENT = 64  # of members: what maps the file finds its numbers where a kernel wants them
CHUNK = 1 << 24  # bytes written at a time
NO_ROOM = 0xFFFFFFFF  # in a field of 32 bits: the number stands in a field of 64
NOT_COMPUTED = 0  # a checksum
SIZES_BEHIND = 8  # a flag of a member: its sizes stand behind it
PADDING, SIZES_64 = 0x4246, 1  # kinds of extra fields
DATE = 0x21  # 1 January 1980: the same content makes the same bytes

LOCAL = struct.Struct("<4s5H3I2H")  # before each member
CENTRAL = struct.Struct("<4s6H3I5H2I")  # of each member, again, in the directory behind them all
END_64 = struct.Struct("<4sQ2H2I4Q")
LOCATOR_64 = struct.Struct("<4sIQI")
END = struct.Struct("<4s4H2IH")
FIRST, DIRECTORY, LAST_64, LAST_LOCATOR, LAST = b"PK\3\4", b"PK\1\2", b"PK\6\6", b"PK\6\7", b"PK\5\6"


class Writer:
    """Writes an archive to ``f``, which needs a ``write`` that takes bytes. ``close()`` writes the directory.
    ``alignment``: of members. ``checksums``: are they computed?"""

    def __init__(self, f, alignment: int = ALIGNMENT, checksums: bool = True):
        self.f, self.at, self.alignment, self.checksums = f, 0, alignment, checksums
        self.members: list[tuple[bytes, int, int, int]] = []  # name, checksum, size, offset

    def _put(self, data: bytes) -> None:
        self.at += len(data)
        while data:
            n = self.f.write(data)
            if not isinstance(n, int) or n >= len(data):
                return
            if n == 0:
                raise OSError("save: the file takes no more bytes")
            data = data[n:]  # a file without a buffer may take a part

    def add(self, name: str, data) -> None:
        """Adds a member: what has bytes, and a length."""
        label, size, checksum = name.encode(), len(data), NOT_COMPUTED
        for i in range(0, size if self.checksums else 0, CHUNK):
            checksum = zlib.crc32(data[i : i + CHUNK], checksum)
        extra = struct.pack("<2H2Q", SIZES_64, 16, size, size) if size >= NO_ROOM else b""
        room = -(self.at + LOCAL.size + len(label) + len(extra) + 4) % self.alignment
        extra += struct.pack("<2H", PADDING, room) + bytes(room)
        self.members.append((label, checksum, size, self.at))
        short = min(size, NO_ROOM)
        self._put(LOCAL.pack(FIRST, 45, 0x800, 0, 0, DATE, checksum, short, short, len(label), len(extra)))
        self._put(label + extra)
        for i in range(0, size, CHUNK):
            part = data[i : i + CHUNK]
            self._put(part if isinstance(self.f, io.IOBase) else bytes(part))

    def close(self) -> None:
        """Writes the directory."""
        begin, n = self.at, len(self.members)
        for label, checksum, size, offset in self.members:
            extra = b""
            if size >= NO_ROOM or offset >= NO_ROOM:
                extra = struct.pack("<2H3Q", SIZES_64, 24, size, size, offset)
                size = offset = NO_ROOM
            self._put(
                CENTRAL.pack(
                    DIRECTORY,
                    45,
                    45,
                    0x800,
                    0,
                    0,
                    DATE,
                    checksum,
                    size,
                    size,
                    len(label),
                    len(extra),
                    0,
                    0,
                    0,
                    0,
                    offset,
                )
                + label
                + extra
            )
        size, end = self.at - begin, self.at
        if n >= 0xFFFF or begin >= NO_ROOM or size >= NO_ROOM:
            self._put(END_64.pack(LAST_64, END_64.size - 12, 45, 45, 0, 0, n, n, size, begin))
            self._put(LOCATOR_64.pack(LAST_LOCATOR, 0, end, 1))
            n, size, begin = min(n, 0xFFFF), min(size, NO_ROOM), min(begin, NO_ROOM)
        self._put(END.pack(LAST, 0, 0, n, n, size, begin, 0))


class Reader:
    """Finds the members of the archive at which ``f`` stands. EOFError when nothing is there, RuntimeError for what is
    no archive, is cut off, or has compressed members."""

    def __init__(self, f):
        self.f = f
        start = f.tell()
        f.seek(0, os.SEEK_END)
        self.length = f.tell()
        self.members: dict[str, tuple[int, int, int | None]] = {}  # offset, size, checksum where it is sure
        if start >= self.length:
            raise EOFError("load: ran out of input: the file stands at its end")
        if self._at(start, 4) != FIRST:
            raise RuntimeError("load: this is not a file that save() wrote")
        if self._at(start, LOCAL.size)[6] & SIZES_BEHIND:
            self._through_directory()
            return
        at = start
        while (kind := self._at(at, 4)) == FIRST:
            at = self._member(at)
        found = 0
        while kind == DIRECTORY:
            sizes = CENTRAL.unpack(self._at(at, CENTRAL.size))[10:13]
            at, found = at + CENTRAL.size + sum(sizes), found + 1
            kind = self._at(at, 4)
        if kind == LAST_64:
            at += END_64.size + LOCATOR_64.size
        last = END.unpack(self._at(at, END.size))
        if last[0] != LAST or found != len(self.members):
            raise RuntimeError("load: the file is corrupt: its directory does not list its members")
        f.seek(at + END.size + last[7])
        self._leave_folder()

    def _at(self, at: int, size: int) -> bytes:
        """Some bytes of a header. RuntimeError when the file ends before."""
        if at < 0 or at + size > self.length:
            raise RuntimeError("load: the file is cut off")
        self.f.seek(at)
        return self.f.read(size)

    def _through_directory(self) -> None:
        """Finds the members of an archive that tells their sizes behind them."""
        import zipfile  # when used: a start of Python does not wait for it

        try:
            with zipfile.ZipFile(self.f) as archive:
                entries = archive.infolist()
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError, struct.error) as e:
            raise RuntimeError(f"load: the file is corrupt or cut off: {e}") from None
        if sum(e.file_size for e in entries) > self.length:
            raise RuntimeError("load: the file is corrupt: its members are longer than it is")
        for e in entries:
            name, extra = LOCAL.unpack(self._at(e.header_offset, LOCAL.size))[9:]
            offset = e.header_offset + LOCAL.size + name + extra
            if e.compress_type != zipfile.ZIP_STORED or e.flag_bits & 1:
                raise RuntimeError(f"load: {e.filename!r} of the file is compressed")
            if e.header_offset < 0 or offset + e.file_size > self.length:
                raise RuntimeError(f"load: the file is cut off within {e.filename!r}")
            self._enter(e.filename, (offset, e.file_size, None))
        self.f.seek(0, os.SEEK_END)
        self._leave_folder()

    def _enter(self, name: str, member: tuple) -> None:
        if name in self.members:
            raise RuntimeError(f"load: the file is corrupt: it has {name!r} twice")
        self.members[name] = member

    def _leave_folder(self) -> None:
        """Names the members without the folder that all are in, which is that of the pickle."""
        folder = next((n.removesuffix("data.pkl") for n in self.members if ("/" + n).endswith("/data.pkl")), "")
        self.members = {name.removeprefix(folder): member for name, member in self.members.items()}

    def _member(self, at: int) -> int:
        """Takes note of the member whose header is at ``at``. Returns where it ends."""
        _, _, flags, method, _, _, checksum, packed, size, name, extra = LOCAL.unpack(self._at(at, LOCAL.size))
        rest = self._at(at + LOCAL.size, name + extra)
        label = rest[:name].decode("utf-8", "replace")
        if method or flags & 9:  # compressed, encrypted, or of a size yet to be told
            raise RuntimeError(f"load: {label!r} of the file is compressed: save() stores members as they are")
        fields = rest[name:]
        while size == NO_ROOM and len(fields) >= 20:
            kind, n = struct.unpack("<2H", fields[:4])
            if kind == SIZES_64 and n >= 16:
                size, packed = struct.unpack("<2Q", fields[4:20])
            fields = fields[4 + n :]
        offset = at + LOCAL.size + name + extra
        if size != packed or offset + size > self.length:
            raise RuntimeError(
                f"load: the file is cut off: {label!r} has {size} bytes, and {self.length - offset} are left"
            )
        self._enter(label, (offset, size, None if checksum == NOT_COMPUTED else checksum))
        return offset + size

    def __contains__(self, name: str) -> bool:
        return name in self.members

    def size(self, name: str) -> int:
        """The bytes of a member."""
        return self.members[name][1]

    def offset(self, name: str) -> int:
        """Where in the file a member begins."""
        return self.members[name][0]

    def read_into(self, name: str, target: memoryview) -> None:
        """Reads a member into memory of its size. RuntimeError when its checksum is wrong."""
        offset, size, checksum = self.members[name]
        back = self.f.tell()
        self.f.seek(offset)
        done = 0
        readinto = getattr(self.f, "readinto", None)
        while done < size:
            if readinto is not None:
                n = readinto(target[done:])
            else:
                part = self.f.read(min(size - done, CHUNK))
                n = len(part)
                target[done : done + n] = part
            if not n:
                raise RuntimeError(f"load: the file is cut off within {name!r}")
            done += n
        self.f.seek(back)
        if checksum is not None and zlib.crc32(target) != checksum:
            raise RuntimeError(
                f"load: the file is corrupt: {name!r} has another checksum than it says; mmap=True does not look at it"
            )

    def read(self, name: str) -> bytes:
        """The bytes of a member."""
        content = bytearray(self.size(name))
        self.read_into(name, memoryview(content))
        return bytes(content)
