"""Algorithms as functions from arrays to arrays, partly compiled.

It may import `_show` and the small modules of the package, but not scikit-learn.
Start reading with `fit_temperature` in `_temperature.py`.
"""
