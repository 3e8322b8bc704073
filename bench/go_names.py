"""Names the functions of a Go program from the table that Go itself keeps for its traces, because released Go programs have no symbols.

Knows 64-bit ELF files that are not relocated, and tables as Go writes them since 1.20; of others it names nothing. Reads one file, starts nothing.
"""
import bisect
import functools
import mmap
import struct

TABLE, MAGIC = b".gopclntab", 0xFFFFFFF1


@functools.cache
def of(path):
    """The names of a program, or None if the file has no table that is known."""
    try:
        return Names(path)
    except (OSError, ValueError, KeyError, struct.error):
        return None


class Names:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        sections = self.sections()
        start = sections[TABLE][1]
        magic, count, _, text, names, _, _, _, functions = struct.unpack_from("<I4x8Q", self.bytes, start)
        if magic != MAGIC:
            raise ValueError("another layout of the table")
        address, offset = sections[b".text"]
        # Newer linkers leave the beginning of the text out.
        self.text = (text - address if text else 0) + offset
        self.names, self.functions = start + names, start + functions
        pairs = struct.unpack_from(f"<{2 * count}I", self.bytes, self.functions)
        self.starts, self.places = pairs[::2], pairs[1::2]

    def sections(self):
        """Address and offset in the file of each section."""
        if self.bytes[:5] != b"\x7fELF\x02":
            raise ValueError("not a 64-bit ELF file")
        table, = struct.unpack_from("<Q", self.bytes, 0x28)
        size, count, of_names = struct.unpack_from("<3H", self.bytes, 0x3A)
        heads = [struct.unpack_from("<2I4Q", self.bytes, table + size * number) for number in range(count)]
        names = heads[of_names][4]
        return {self.word(names + head[0]): (head[3], head[4]) for head in heads}

    def word(self, offset):
        return self.bytes[offset:self.bytes.find(b"\0", offset)]

    def at(self, offset):
        """The function at this offset in the file."""
        found = bisect.bisect_right(self.starts, offset - self.text) - 1
        if found < 0:
            return None
        name, = struct.unpack_from("<4xi", self.bytes, self.functions + self.places[found])
        return self.word(self.names + name).decode(errors="replace")
