import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from sklearn_calib._kernels import _compile
from sklearn_calib.exceptions import CalibrationWarning

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


def run(code, cache, **options):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    environment.pop("SKLEARN_CALIB_QUIET", None)
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, text=True, check=True, **options
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "lines"), [("", 1), ("os.environ['SKLEARN_CALIB_QUIET']='1'", 0)]
)
def test_a_line_on_the_terminal_while_the_compiler_runs(tmp_path, before, lines):
    pty = pytest.importorskip("pty")
    code = f"""
import os
{before}
from sklearn_calib._kernels import _compile
_compile.MAX_SILENT_COMPILE_SECONDS = 0.0
from sklearn_calib.metrics import interval_calibration_error
interval_calibration_error([0, 1, 0, 1], [.1, .4, .5, .9])
interval_calibration_error([0, 1, 0, 1], [.1, .4, .5, .9])
"""
    terminal, side = pty.openpty()
    with os.fdopen(terminal, "rb", 0) as reader:
        run(code, tmp_path / "cache", stderr=side)
        os.write(side, b"end\n")
        os.close(side)
        text = b""
        while b"end" not in text:
            text += reader.read(100)
    assert text.count(b"sklearn_calib: compiling") == lines


@pytest.mark.slow
def test_silent_where_nobody_waits_at_a_terminal(tmp_path):
    code = """
from sklearn_calib._kernels import _compile
_compile.MAX_SILENT_COMPILE_SECONDS = 0.0
from sklearn_calib.metrics import interval_calibration_error
interval_calibration_error([0, 1, 0, 1], [.1, .4, .5, .9])
"""
    assert run(code, tmp_path, capture_output=True).stderr == ""


def test_own_compilation_is_announced(monkeypatch):
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(_compile, "MAX_SILENT_COMPILE_SECONDS", 0.0)
    monkeypatch.setattr(_compile, "_print_notice_if_on_terminal", lambda: None)

    def double(x):
        return 2 * x

    double.__module__ = "sklearn_calib._kernels._double"
    listener = _compile.CompilationNotice()
    numba.core.event.register("numba:compile", listener)
    try:
        assert numba.njit(double)(1) == 2
    finally:
        numba.core.event.unregister("numba:compile", listener)
    assert listener.is_printed and listener.spent > 0.0


def test_other_peoples_compilation_is_not_announced():
    numba = pytest.importorskip("numba")
    listener = _compile.CompilationNotice()
    numba.core.event.register("numba:compile", listener)
    try:
        numba.njit(lambda x: x + 1)(1)
    finally:
        numba.core.event.unregister("numba:compile", listener)
    assert listener.spent == 0.0


TINY = """
from sklearn_calib._kernels._compile import compile_kernel

@compile_kernel(error_model="numpy")
def double(x):
    return 2 * x

@compile_kernel
def triple(x):
    return 3 * x
"""


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A process of its own in miniature: `kept()` imports two kernels anew; the cache is here."""
    numba = pytest.importorskip("numba")
    (tmp_path / "tiny.py").write_text(TINY, encoding="utf-8")
    locators = "numba.core.caching.UserProvidedCacheLocator"
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(
        numba.core.config, "CACHE_LOCATOR_CLASSES", locators, raising=False
    )
    caching = numba.core.caching
    if hasattr(caching, "_UserProvidedCacheLocator"):  # of a numba without that option
        only = [caching._UserProvidedCacheLocator]
        monkeypatch.setattr(caching.CacheImpl, "_locator_classes", only)

    def fresh():
        monkeypatch.setattr(_compile, "_has_warned", False)
        spec = importlib.util.spec_from_file_location("tiny", tmp_path / "tiny.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return fresh


def hits(function):
    return sum(function.stats.cache_hits.values())


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        ("nbi", b""),
        ("nbi", b"no pickle"),
        ("nbc", b""),
        ("nbc", b"no pickle"),
        ("nbc", b"\x80\x04"),
    ],
)
def test_a_damaged_cache_is_said_and_mended(kept, tmp_path, ending, content):
    assert kept().double(3) == 6
    (damaged,) = tmp_path.glob(f"cache/*/tiny.double*.{ending}")
    damaged.write_bytes(content)
    with pytest.warns(CalibrationWarning, match=r"NUMBA_CACHE_DIR") as said:
        assert kept().double(3) == 6
    assert len(said) == 1 and "expected a cache" in str(said[0].message)
    again = kept()
    assert again.double(3) == 6 and sum(again.double.stats.cache_hits.values()) == 1


def test_no_folder_for_the_cache(kept, tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("a file", encoding="utf-8")
    tiny = kept()
    with pytest.warns(CalibrationWarning, match=r"NUMBA_CACHE_DIR") as said:
        assert tiny.double(3) == 6 and tiny.triple(3) == 9
    assert len(said) == 1


def test_a_folder_that_went(kept, tmp_path):
    tiny = kept()
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").write_text("a file", encoding="utf-8")
    with pytest.warns(
        CalibrationWarning, match=r"NUMBA_CACHE_DIR.* that can be written"
    ) as said:
        assert tiny.double(3) == 6 and tiny.triple(3) == 9
    assert len(said) == 1 and str(tmp_path) in str(said[0].message)


def test_a_full_disk(kept, tmp_path):
    resource = pytest.importorskip("resource")
    tiny, usual = kept(), resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.warns(CalibrationWarning, match=r"OSError .*NUMBA_CACHE_DIR") as said:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, usual[1]))  # bytes of a file
        try:
            assert tiny.double(2) == 4 and tiny.triple(2.5) == 7.5
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert len(said) == 1 and not [*tmp_path.glob("cache/*/*")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        "from_dict or staging or one_out or logistic_intervals or estimate_angle",
        "Isotonic or Histogram",
        pytest.param(
            "VennAbers or ENIR or BBQ or Trend or Polynomial", marks=pytest.mark.cross
        ),
    ],
)
def test_numbers_are_the_same_without_the_compiler(names):
    """Exports, staged and linear models, and the recalibrators that are compiled."""
    stored = Path(__file__).parents[1] / "test_stored_numbers.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", str(stored), "-k", names],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-500:]
