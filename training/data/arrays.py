"""The array types of sample numbers and token numbers, and of what is true for each."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]
