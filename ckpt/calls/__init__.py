"""Public calls for which several packages work together; each imports what it needs when it is made.

Those of one package are in that package: ``ckpt/__init__.pyi`` has all names, with the module of each.
"""
