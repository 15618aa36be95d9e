# The processes of one group: they meet before each collective, so that the engine below is only asked when all are there, in time,
# for the same thing. Messages from one process to another are announced, so that they can be told apart by tag and group.
import zlib

import numpy as np

from . import _job
from ._errors import DistBackendError

# fields of a counter that each process of a meeting adds to: checksum of what for, processes, processes that have sent messages
_COME, _SENT = 1 << 40, 1 << 52
_CHECKSUM = 0x7FFFFFF


class Circle:
    """A group of world ranks `ranks` (in group order) among the processes of a job; None for a job: this process alone.

    timeout: seconds. Arrays are contiguous NumPy arrays, changed in place.
    """

    def __init__(self, job, ranks, name, timeout):
        self.job, self.ranks, self.name, self.timeout = job, list(ranks), name, timeout
        self.size = len(ranks)
        self.rank = self.ranks.index(job.rank if job is not None else 0)
        self._meetings = 0
        if self.size > 1:
            self.engine = job.engine
            ascending = sorted(self.ranks)
            self._order = [ascending.index(r) for r in self.ranks]
            if ascending == list(range(job.size)):
                self._group = job.engine.WORLD
            else:
                self._group = f"group_{name}"
                job.engine.make_group(self._group, ascending)

    # ------------------------------------------------------------------------------------------------ meeting
    def meet(self, what, timeout=None):
        """Wait until all processes of the group have come to the same operation. DistBackendError after the timeout, where one
        has ended, or where they came for different things."""
        if self.size == 1:
            return
        job, board = self.job, self.job.board
        self._meetings += 1
        number = self._meetings
        key = f"{self.name}/{number % 4}"
        words = f"{self.name}/for/{number % 2}"  # after a disagreement one may already be at the next meeting
        mail = mailbox(job)

        def arrive():
            board.put(f"{words}/{job.rank}", what)
            board.put(f"{self.name}/at/{job.rank}", str(number))
            return board.add(key, _COME + (_SENT if mail.sent else 0) + (zlib.crc32(what.encode()) & _CHECKSUM))

        def all_here():
            nonlocal total
            if total % _SENT // _COME < self.size:
                total = board.read(key)
            return total % _SENT // _COME >= self.size

        job.check_board()
        total = job._asked(arrive)
        timeout = self.timeout if timeout is None else timeout
        job.wait(all_here, self.ranks, timeout, lambda gone: f"{what}{self._absent(number) if gone is None else ''}")
        if self.rank == 0:  # nobody looks at the last meeting any more
            board.put(f"{self.name}/{(number - 1) % 4}", "0")
        if total % _COME != self.size * (zlib.crc32(what.encode()) & _CHECKSUM):
            asked = [board.get(f"{words}/{r}").decode() for r in self.ranks]
            listing = "; ".join(f"rank {r}: {text}" for r, text in zip(self.ranks, asked))
            raise DistBackendError(f"The processes of a group called different collectives, or the same with different shapes, "
                                   f"dtypes or arguments. {listing}")
        if total // _SENT:
            mail.collect(self.ranks)  # the engine takes what comes from a peer in order, whatever it is for

    def absent(self, number):
        """The world ranks that have not come to a meeting."""
        return [r for r in self.ranks if self.job.board.read(f"{self.name}/at/{r}") < number]

    def _absent(self, number):
        try:
            missing = self.absent(number)
        except RuntimeError:
            return ""
        return f" (not there: {_job._ranks(missing)})" if missing else ""

    def watch(self, timeout, wait_all_ranks):
        """A barrier that names who has not come to it. Gives nothing; DistBackendError."""
        if self.size == 1:
            return
        number = self._meetings + 1
        try:
            self.meet("monitored_barrier", timeout)
        except DistBackendError as error:
            missing = self.absent(number)
            if not missing:
                raise
            named = missing if wait_all_ranks else missing[:1]
            raise DistBackendError(
                f"[Rank {self.job.rank}]: Ranks {', '.join(map(str, named))} failed to pass monitoredBarrier in "
                f"{round((self.timeout if timeout is None else timeout) * 1000)} ms ({error})"
            ) from None

    # ------------------------------------------------------------------------------------------------ collectives
    def _run(self, function, *arguments):
        return self.job._asked(lambda: (function(*arguments),))[0]

    def all_reduce(self, array, operation):
        """Reduce in place by an operation of MindSpore; dtype and operation must be among the engine's."""
        if self.size > 1 and array.size:
            self._run(self.engine.all_reduce, array, operation, self._group)

    def broadcast(self, array, root):
        """Overwrite the array by that of the world rank `root`."""
        if self.size > 1 and array.size:
            self._run(self.engine.broadcast, array, root, self._group)

    def all_gather(self, array):
        """The arrays of all processes, in group order."""
        if self.size == 1 or not array.size:
            return [array.copy() for _ in range(self.size)]
        made = self._run(self.engine.all_gather, array, self.size, self._group)
        return [made[i] for i in self._order]

    def exchange(self, outgoing, incoming):
        """Send `outgoing[i]` to and fill `incoming[i]` from the process i of the group; None for no message."""
        own = outgoing[self.rank], incoming[self.rank]
        if own[0] is not None and own[1] is not None:
            own[1][...] = own[0]
        turns = [(self.rank + i) % self.size for i in range(1, self.size)]
        for i in turns:
            if outgoing[i] is not None and outgoing[i].size:
                self._run(self.engine.send, outgoing[i], self.ranks[i])
        for i in reversed(turns):
            if incoming[i] is not None and incoming[i].size:
                self._run(self.engine.receive, incoming[i], self.ranks[i])

    def gather(self, array, root, sizes):
        """The arrays of all processes, of one dtype and `sizes` elements each, for the process `root` of the group; the others get
        an empty list."""
        receives = self.rank == root
        incoming = [np.empty(n, array.dtype) if receives else None for n in sizes]
        self.exchange([array.reshape(-1) if i == root else None for i in range(self.size)], incoming)
        return incoming if receives else []

    def scatter(self, arrays, root, received):
        """Fill `received` with the array that the process `root` of the group has for this one; the others give no arrays."""
        outgoing = arrays if self.rank == root else [None] * self.size
        self.exchange(outgoing, [received if i == root else None for i in range(self.size)])


class Message:
    """A message that has been announced: from whom, in which group, under which tag, and its bytes."""

    __slots__ = ("source", "group", "tag", "data")

    def __init__(self, source, group, tag, data):
        self.source, self.group, self.tag, self.data = source, group, tag, data


class Receipt:
    """A wish to receive: matched with the messages in the order of the wishes. `message` is there once it has come."""

    __slots__ = ("sources", "group", "tag", "message", "taken")

    def __init__(self, sources, group, tag):
        self.sources, self.group, self.tag, self.message, self.taken = sources, group, tag, None, None

    def fits(self, message):
        return message.source in self.sources and message.group == self.group and message.tag == self.tag


class Mailbox:
    """Messages between single processes of a job."""

    def __init__(self, job):
        self.job = job
        self.sent = {}  # world rank -> messages sent to it
        self._received = {}  # world rank -> messages taken from the engine
        self._unclaimed, self._wishes = [], []

    def send(self, array, destination, group, tag):
        """Send to a world rank; returns when it has arrived there."""
        number = self.sent.get(destination, 0) + 1
        me, board = self.job.rank, self.job.board

        def deliver():
            board.put(f"mail/{me}/{destination}/{number}", f"{group}|{tag}|{array.nbytes}")
            if array.nbytes:
                self.job.engine.send(array, destination)
            self.sent[destination] = number
            board.put(f"mail/{me}/{destination}", str(number))
            board.read(f"mail/{me}/{destination}")  # announced before anything else happens here
            return True

        gone = self.job.gone([destination])
        if gone:
            raise DistBackendError(f"Connection closed by peer: rank {destination} has ended")
        self.job._asked(deliver)

    def wish(self, sources, group, tag):
        """Ask for the next fitting message of one of the world ranks."""
        receipt = Receipt(sources, group, tag)
        for message in self._unclaimed:
            if receipt.fits(message):
                self._unclaimed.remove(message)
                receipt.message = message
                return receipt
        self._wishes.append(receipt)
        return receipt

    def drop(self, receipt):
        """The wish is given up."""
        if receipt in self._wishes:
            self._wishes.remove(receipt)

    def collect(self, sources):
        """Take all messages that the world ranks have announced; gives True."""
        me, board = self.job.rank, self.job.board
        for source in sources:
            if source == me:
                continue
            done = self._received.get(source, 0)
            for number in range(done + 1, board.read(f"mail/{source}/{me}") + 1):
                head = f"mail/{source}/{me}/{number}"
                group, tag, length = board.get(head).decode().split("|")
                board.remove(head)
                data = np.empty(int(length), np.uint8)
                if data.size:
                    self.job.engine.receive(data, source)
                self._received[source] = number
                self._hand_out(Message(source, group, int(tag), data))
        return True

    def _hand_out(self, message):
        for receipt in self._wishes:
            if receipt.fits(message):
                self._wishes.remove(receipt)
                receipt.message = message
                return
        self._unclaimed.append(message)

    def has_come(self, receipt):
        """True when the message of a wish is there; does not wait."""
        if receipt.message is None:
            self.job._asked(lambda: self.collect(receipt.sources))
        return receipt.message is not None


def mailbox(job):
    """The mailbox of this process in a job."""
    if getattr(job, "mail", None) is None:
        job.mail = Mailbox(job)
    return job.mail
