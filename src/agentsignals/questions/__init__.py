"""The studies, one a file. They ask in SQL and get rows; none knows the store, the report or another study."""
