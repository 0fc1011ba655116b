"""Damaged files of every format, read as the program reads them: `python -m tests.fuzz --minutes 1`.

Every sample of `tests/formats` is spoilt in its structure or its bytes (`mutations`), a folder of them is ingested
beside good neighbours, and what came out is checked (`checking`): no crash, no hang, every record read or counted,
nothing in the store that can't be summed or encoded, the neighbours as they are alone.
"""
