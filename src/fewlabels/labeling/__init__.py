"""Labeling items one by one, with the current estimate beside them.

The room stands on `data`, `evaluation`, `estimating`, `questions` and `report`. Start with
`session.py`; `README.md` has the data flow. `journal` writes the record, `items` holds the pool,
`monitor` the estimates; `server`, `terminal` and `notebook` are the interfaces.
"""
