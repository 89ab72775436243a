"""From a label posterior to numbers: draws, metrics of them, intervals, and statuses.

`draws` says what a draw is, `evaluator` makes values and interval draws of metrics, `guard` holds
them against the labels, `status` and `input_facts` say how far to trust them; `joint_errors` and
`item_variance` ask the same draws other questions. `groups` finds the items of `--by`
(`groups_by_column`); of items in parts `streaming/tally` does.
"""
