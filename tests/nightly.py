"""What ``make nightly`` runs beyond ``make test``: tests marked ``nightly``, and more cases of
others.

By hand, when the code that they judge changes: ``pytest -m nightly tests/simulations``, or with
``TRAINDYNO_NIGHTLY=1`` as often and with as many cases as ``make nightly``.
"""

import os

NIGHTLY = bool(os.environ.get("TRAINDYNO_NIGHTLY"))
