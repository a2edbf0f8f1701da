"""The versions at which a name means another function are those in CUDA's header."""

import os
import pathlib
import re
import unittest

import real_process
from cuda_calls import rows

HEADER = pathlib.Path(os.environ["FRAGTRACE_CUDA_INCLUDE"]) / "cudaTypedefs.h"
LAST_32_BIT = 2000  # older signatures are left alone


class HeaderVersions(unittest.TestCase):
    def test_every_version_of_a_name_has_its_row(self):
        declared = {}
        for name, version, stream in re.findall(r"\*PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)", HEADER.read_text()):
            declared.setdefault(name, set()).add((int(version), bool(stream)))
        table = {}
        for row in rows():
            if row.library == "driver":
                table.setdefault(row.base, set()).add((row.since, row.per_thread))
        self.assertGreater(len(table), 60)
        for base, found in table.items():
            with self.subTest(base):
                expected = declared[base]
                if len(expected) > len(found):
                    expected = expected - {(LAST_32_BIT, False)}
                self.assertEqual(found, expected)


if __name__ == "__main__":
    real_process.main()
