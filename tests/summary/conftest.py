import pytest


@pytest.fixture
def small_cells(monkeypatch):
    """Fewer cells than users may ask for, so that few rows make them coarse."""
    monkeypatch.setattr("sklearn_calib.summary._summary.MIN_CELLS_PER_PROBLEM", 1)
