"""Tests of the package words."""
