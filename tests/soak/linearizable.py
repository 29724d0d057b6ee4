"""Decides whether a history of operations on one key is linearizable, by the algorithm of Wing, Gong and Lowe: search for
an order of the operations that respects real time and that a single register could have produced.

The register holds a value or None (the object is absent). Values are unique, so a compare-and-swap on a version is one on
the value that the version stands for."""
import dataclasses
import math

STEPS_MAX = 2_000_000  # Beyond that the search is given up, and the history counts as undecided.


@dataclasses.dataclass
class Operation:
    """`outcome` is "ok", "refused" (the register's state forbids it) or "unknown" (it may happen at any later time, or
    never). `observed` is what a read returned."""
    kind: str  # read, create, swap, set, delete
    call: float
    end: float
    outcome: str = "ok"
    value: str | None = None
    expected: str | None = None
    observed: str | None = None
    client: str = ""


def step(state, operation):
    """Whether the operation can have had its outcome in this state, and the state after it."""
    kind, done = operation.kind, operation.outcome != "refused"
    if kind == "read":
        return operation.observed == state, state
    if kind == "create":
        return (state is None) == done, operation.value if done else state
    if kind == "swap":
        return (state is not None and state == operation.expected) == done, operation.value if done else state
    if kind == "set":
        return (state is not None) == done, operation.value if done else state
    if kind == "delete":
        return (state is not None) == done, None if done else state
    raise ValueError(kind)


class _Entry:
    __slots__ = ("operation", "bit", "is_call", "match", "before", "after")

    def __init__(self, operation, bit, is_call):
        self.operation, self.bit, self.is_call = operation, bit, is_call
        self.match = self.before = self.after = None


def _link(operations):
    """A list of calls and returns in the order of time, behind a head. Operations of unknown outcome never return."""
    events = []
    for number, operation in enumerate(operations):
        call = _Entry(operation, 1 << number, True)
        # A call at the same instant as a return comes first: the two overlap.
        events.append((operation.call, 0, number, call))
        if operation.outcome != "unknown" and operation.end != math.inf:
            call.match = _Entry(operation, 1 << number, False)
            events.append((operation.end, 1, number, call.match))
    head = last = _Entry(None, 0, False)
    for _, _, _, entry in sorted(events, key=lambda e: e[:3]):
        last.after, entry.before, last = entry, last, entry
    return head


def _unlink(entry):
    for each in (entry, entry.match):
        if each is not None:
            each.before.after = each.after
            if each.after is not None:
                each.after.before = each.before


def _relink(entry):
    for each in (entry.match, entry):
        if each is not None:
            each.before.after = each
            if each.after is not None:
                each.after.before = each


def find_violation(operations, initial=None):
    """None if the history is linearizable; otherwise what cannot be explained."""
    head = _link(operations)
    remaining = sum(1 for o in operations if o.outcome != "unknown" and o.end != math.inf)
    state, done, seen, stack, steps = initial, 0, set(), [], 0
    deepest, stuck = -1, None
    entry = head.after
    while remaining:
        steps += 1
        if steps > STEPS_MAX:
            return f"undecided after {STEPS_MAX} steps of {len(operations)} operations"
        if entry is not None and entry.is_call:
            possible, after = step(state, entry.operation)
            if possible and (done | entry.bit, after) not in seen:
                seen.add((done | entry.bit, after))
                stack.append((entry, state))
                state, done = after, done | entry.bit
                remaining -= entry.match is not None
                _unlink(entry)
                entry = head.after
            else:
                entry = entry.after
            continue
        # An operation returned before an order that contains it was found.
        if len(stack) > deepest and entry is not None:
            deepest, stuck = len(stack), (entry.operation, state)
        if not stack:
            operation, at = stuck
            return f"{operation} fits nowhere; the register was {at!r} in the longest explanation of what came before"
        entry, state = stack.pop()
        done &= ~entry.bit
        remaining += entry.match is not None
        _relink(entry)
        entry = entry.after
    return None
