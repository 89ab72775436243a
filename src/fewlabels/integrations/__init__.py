"""Where other tools call this package: a file per tool, over what everybody can call.

`scorer` is for scikit-learn; `pytest_plugin`, `mlflow_evaluator` and `inspect_metrics` are found by
the tools in their names, through entry points of the distribution. Nothing else imports them, and
each imports its own tool alone. The room imports `checks`, `errors`, `estimates`, `estimating`,
`kernels`, `methods`, `metrics`, `predictions` and `questions`.
"""
