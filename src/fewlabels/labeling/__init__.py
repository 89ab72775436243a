"""Labeling: one item after another, with the estimate beside; `README.md` says what flows where."""
