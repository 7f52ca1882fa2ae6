"""Features apart: a folder each, which the tables beside them register, one for each program that
is deployed.

``suite_parts`` (what reads suites: the container too), ``report_parts`` (the function that judges)
and ``client_parts`` (the command line) import slices; nothing else does, and no slice imports
another. To take a slice out, delete its folder and its entry in each table.
"""
