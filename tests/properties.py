"""Properties of code over drawn inputs: the same ones each time in ``make test``, new ones in
``make nightly``.
"""

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.nightly import NIGHTLY

settings.register_profile(
    "traindyno",
    derandomize=not NIGHTLY,
    deadline=None,
    database=None,
    print_blob=True,
    max_examples=1000 if NIGHTLY else 50,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)
settings.load_profile("traindyno")
if not NIGHTLY:
    # hypothesis also draws constants of the modules that are imported so far, which differ between
    # workers.
    setattr(providers, "_get_local_constants", lambda: providers._local_constants)  # noqa: B010


def examples(count: int) -> settings:
    """Settings for this number of examples, ten times as many in ``make nightly``."""
    return settings(max_examples=count * (10 if NIGHTLY else 1))
