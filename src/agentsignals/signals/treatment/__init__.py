"""The knobs an eval run was given, as configured."""
