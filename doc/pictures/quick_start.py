"""The picture that the code of the README ends with: that code, run."""

import re
from pathlib import Path

(code,) = re.findall(
    r"```python\n(.*?)```", Path("../../README.md").read_text(encoding="utf-8"), re.S
)
exec(code)
