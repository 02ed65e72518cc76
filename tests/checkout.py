"""The folders of the repository; a module that imports them is skipped where they are not there."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOC = ROOT / "doc"
GUIDE = DOC / "user_guide"
if not GUIDE.exists():
    pytest.skip("not a checkout", allow_module_level=True)
if str(DOC) not in sys.path:
    sys.path.insert(0, str(DOC))  # what the pages are made with
