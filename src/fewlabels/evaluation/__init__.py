"""From a label posterior to estimates: draws, metrics of them, intervals, and statuses.

The room imports `checks`, `comparison`, `errors`, `estimates`, `kernels`, `methods`, `metrics`,
`posterior`, `predictions`, `report` and `shifts`. Start with the head of `draws`, which defines a
draw; then:

1. `evaluator`: values and interval draws of metrics, for all items or by group (`groups`
   finds the items of `--by`; for files read in parts `streaming/tally` does).
2. `guard`: moves them towards the labels where these contradict the method.
3. `status`, `input_facts` and `suspect_labels`: how far to trust each estimate, and the warnings
   about the input.

`confusion_matrices` and `disagreements` are what classifiers and labels differ by, and on which
items. `joint_errors`, `differences`, `item_variance` and `anytime` are further statistics of the
same draws; `details` collects what a report shows beside the estimates, and `calibration` has what
labels alone say of calibration.
"""
