"""`python -m traindyno` is the same as `traindyno`."""

from traindyno.cli.entry import app

app()
