"""A small classifier of single messages: what it counts, what it weighs, how it is made and how good it is.

`features` are worked out of a message, `linear_model` weighs them without any package; `training` makes models and
judges them on projects that they were not made from (docs/labels.md#classifier).
"""
