"""Labeling items one by one, with the current estimate beside them.

Start with `session.py`; `README.md` has the data flow. `journal` writes the record, `items` holds
the pool, `monitor` the estimates; `server`, `terminal` and `notebook` are the interfaces.

The room imports `checks`, `data`, `errors`, `estimating`, `evaluation`, `kernels`, `methods`,
`metrics`, `predictions`, `questions` and `report`.
"""
