"""``python -m sklearn_calib`` is the command ``sklearn-calib``."""

import sys

from ._cli import main

if __name__ == "__main__":
    sys.exit(main())
