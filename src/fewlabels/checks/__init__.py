"""Checks of arguments, arrays, class names and conditions, with the messages users see.

The room imports `errors` and `kernels`, so that every other room can use it. Start with
`arguments.py` (numbers and options), then `arrays.py` (the inputs of `Predictions`).
"""
