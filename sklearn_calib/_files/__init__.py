"""Reads tables and documents from files, and writes them safely.

It may import `_kernels`, `_validation` and the layers below them.
Start reading with `load_table` in `tables.py`.
"""
