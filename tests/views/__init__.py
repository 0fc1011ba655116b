"""Tests of the package views."""
