"""`python -m traindyno` is the same as `traindyno`."""

from traindyno.cli.main import app

app()
