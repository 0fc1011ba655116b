"""Trace files of ordinary sessions and eval trials, into which one cause at a time is laid.

Written from what a finding has to say, without a look at how findings are computed (that is another's hand,
`tests/planted_stores.py`): sessions are acted out with a context that grows and a cache that is lost after five
minutes, and then written as each agent would have (`tests/demo_stories.py`).
"""
