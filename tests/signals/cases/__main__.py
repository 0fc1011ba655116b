"""Writes anew what the signals of each case say."""

from tests.signals.cases import main

main()
