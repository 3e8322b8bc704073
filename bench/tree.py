"""What a process and all processes below it use, from /proc: memory as time passes, and processor seconds. Linux only.

It must read few files a sample: it runs on the processors of the program that it measures.
"""
import os
import threading
import time

TICKS, PAGE, MIB = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE"), 1 << 20
INTERVAL = 0.05


def below(root):
    """The processes that it started, and those that they started."""
    found, waiting = [], [root]
    while waiting:
        process = waiting.pop()
        children = []
        try:
            # A child belongs to the thread that started it.
            for thread in os.listdir(f"/proc/{process}/task"):
                children += read(f"/proc/{process}/task/{thread}/children").split()
        except OSError:
            # It ended meanwhile.
            continue
        found += children
        waiting += children
    return found


def read(path):
    # Without Python's own buffers and decoders, which cost more than the kernel's part.
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, 65536).decode(errors="replace")
    finally:
        os.close(file)


def processor(root):
    """Seconds so far of the process, of the children that it has reaped, and of those that still run."""
    seconds = 0.0
    for process in [root, *below(root)]:
        try:
            fields = read(f"/proc/{process}/stat").rpartition(")")[2].split()
        except OSError:
            continue
        seconds += sum(map(int, fields[11:15])) / TICKS
    return seconds


class Memory(threading.Thread):
    """From `with` to its end: points of seconds, MiB of the process alone, and MiB of it with all below it.

    The process alone is its resident memory. A process below it adds its proportional share, because several helm at a time share the
    pages of their program.
    """

    def __init__(self, root):
        super().__init__(daemon=True)
        self.root, self.points, self.is_over, self.running_own = root, [], threading.Event(), set()

    def __enter__(self):
        self.began = time.monotonic()
        self.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.join()

    def run(self):
        pause = 0.0
        while not self.is_over.wait(pause):
            pause, at = INTERVAL, time.monotonic() - self.began
            try:
                alone = int(read(f"/proc/{self.root}/statm").split()[1]) * PAGE / MIB
            except (OSError, IndexError):
                return
            rest = sum(map(self.share, below(self.root)))
            self.points.append((round(at, 2), round(alone, 1), round(alone + rest, 1)))

    def share(self, process):
        """MiB. A child that has not yet begun its own program still uses its parent's memory, and counts as nothing."""
        try:
            if process not in self.running_own:
                if read(f"/proc/{process}/cmdline") == read(f"/proc/{self.root}/cmdline"):
                    return 0
                self.running_own.add(process)
            return int(read(f"/proc/{process}/smaps_rollup").split("\nPss:", 1)[1].split(None, 1)[0]) / 1024
        except (OSError, IndexError):
            return 0

    def peak(self, until):
        """The largest sum until then, MiB."""
        return max(point[2] for point in self.points if point[0] <= until)
