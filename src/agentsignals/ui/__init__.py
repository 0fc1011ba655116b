"""The local page: what the store holds, read only, on 127.0.0.1.

`server` speaks HTTP and refuses what is not ours, `routes` finds the page of an address, `pages` ask the store what a
page needs, `rendering` makes HTML of it.
"""
