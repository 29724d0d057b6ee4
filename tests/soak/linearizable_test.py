#!/usr/bin/env python3
"""The checker accepts what a register can do and finds what it cannot."""
import math
import random
import unittest

from linearizable import Operation, find_violation


def op(kind, call, end, **fields):
    return Operation(kind, call, end, **fields)


class LinearizableTest(unittest.TestCase):
    def accepts(self, *operations):
        self.assertIsNone(find_violation(list(operations)))

    def finds(self, *operations):
        found = find_violation(list(operations))
        self.assertIsNotNone(found)
        return found

    def test_reads_see_what_was_written_before_or_is_being_written(self):
        create = op("create", 0, 1, value="a")
        self.accepts(create, op("read", 2, 3, observed="a"))
        self.accepts(create, op("read", 0.5, 3, observed=None))
        self.accepts(create, op("read", 0.5, 0.6, observed="a"))
        self.finds(create, op("read", 2, 3, observed=None))
        self.finds(create, op("read", 2, 3, observed="b"))

    def test_a_stale_read_is_found(self):
        self.finds(op("create", 0, 1, value="a"), op("set", 2, 3, value="b"), op("read", 4, 5, observed="a"))
        # Two reads that disagree about the order of overlapping writes.
        writes = (op("create", 0, 1, value="a"), op("set", 2, 9, value="b"))
        self.accepts(*writes, op("read", 3, 4, observed="a"), op("read", 5, 6, observed="b"))
        self.finds(*writes, op("read", 3, 4, observed="b"), op("read", 5, 6, observed="a"))

    def test_an_acknowledged_write_that_is_lost_is_found(self):
        self.finds(op("create", 0, 1, value="a"), op("swap", 2, 3, expected="a", value="b"),
                   op("swap", 4, 5, expected="a", value="c"))

    def test_of_two_swaps_of_one_version_one_is_refused(self):
        create = op("create", 0, 1, value="a")
        first = op("swap", 2, 5, expected="a", value="b")
        self.accepts(create, first, op("swap", 2, 5, expected="a", value="c", outcome="refused"))
        self.finds(create, first, op("swap", 2, 5, expected="a", value="c"))
        self.finds(create, op("swap", 2, 5, expected="a", value="c", outcome="refused"))

    def test_two_creates_do_not_both_succeed(self):
        self.finds(op("create", 0, 5, value="a"), op("create", 0, 5, value="b"))
        self.accepts(op("create", 0, 5, value="a"), op("delete", 0, 5), op("create", 0, 5, value="b"))

    def test_an_unknown_write_happens_late_or_never(self):
        unknown = op("set", 2, math.inf, value="b", outcome="unknown")
        create = op("create", 0, 1, value="a")
        self.accepts(create, unknown, op("read", 3, 4, observed="a"))
        self.accepts(create, unknown, op("read", 3, 4, observed="a"), op("read", 5, 6, observed="b"))
        self.finds(create, unknown, op("read", 3, 4, observed="b"), op("read", 5, 6, observed="a"))

    def test_random_histories_of_a_real_register_are_accepted_and_planted_bugs_found(self):
        found = 0
        for seed in range(60):
            draw = random.Random(seed)
            history, state, now = [], None, 0.0
            for n in range(60):
                now += 1
                kind = draw.choice(["read", "read", "create", "swap", "set", "delete"])
                call, end = now - draw.random() * 3, now + draw.random() * 3
                value, expected = f"v{n}", draw.choice([state, "other"])
                made = op(kind, call, end, value=value, expected=expected, observed=state)
                made.outcome = "ok" if {"read": True, "create": state is None, "swap": state is not None and expected == state,
                                        "set": state is not None, "delete": state is not None}[kind] else "refused"
                if made.outcome == "ok" and kind != "read":
                    state = None if kind == "delete" else value
                history.append(made)
            self.assertIsNone(find_violation(history), f"seed {seed}")
            # A write that was acknowledged and never happened, with a read right behind it.
            end = max(o.end for o in history) + 1
            lost = history + [op("delete", end, end + 1, outcome="ok" if state else "refused"),
                              op("create", end + 2, end + 3, value="lost"), op("read", end + 4, end + 5, observed=None)]
            found += find_violation(lost) is not None
        self.assertEqual(found, 60)


if __name__ == "__main__":
    unittest.main()
