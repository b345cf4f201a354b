"""sdist and wheel, as `packaging/check_dist.py` looks at them; and that it notices what is wrong."""

from __future__ import annotations

import tarfile
from pathlib import Path

import check_dist
import pytest


def test_both_are_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_dist.main([str(tmp_path / "dist")]) == 0, capsys.readouterr().err
    assert "are whole" in capsys.readouterr().out
    (sdist,) = (tmp_path / "dist").glob("*.tar.gz")
    # The same sdist, with a module left out: noticed.
    lacking = tmp_path / "lacking.tar.gz"
    with tarfile.open(sdist) as whole, tarfile.open(lacking, "w:gz") as cut:
        for member in whole.getmembers():
            if not member.name.endswith("app/claw_app/themes.py") and member.isfile():
                cut.addfile(member, whole.extractfile(member))
    with pytest.raises(check_dist.Broken, match=r"lacks app/claw_app/themes\.py"):
        check_dist.sdist_is_whole(lacking)
