"""Shared by all checks of a report (check_report.py)."""


class Findings(list):
    """Contradictions. `at` is the place of those that follow."""

    at = ""

    def _add(self, what):
        self.append(f"{self.at}: {what}" if self.at else what)

    def holds(self, fact, what):
        if not fact:
            self._add(what)

    def equal(self, what, value, expected):
        self.holds(value == expected, f"{what}: {value} is not {expected}")

    def rising(self, **values):
        """Checks that each value is at most the next one."""
        pairs = list(values.items())
        for (small_name, small), (large_name, large) in zip(pairs, pairs[1:]):
            self.holds(small <= large, f"{small_name} {small} is more than {large_name} {large}")


def is_exact(fidelity):
    return (
        fidelity["placements"] == fidelity["placements_equal"]
        and fidelity["segments"] == fidelity["segments_equal"]
        and not fidelity["reason"]
    )


def fidelity_of(report, device):
    return device.get("fidelity", report.get("fidelity"))


def has_pool(report, device):
    return not fidelity_of(report, device)["reason"].startswith("no caching pool")


def of_device(rows, device):
    return [row for row in rows if row["device"] == device["index"]]
