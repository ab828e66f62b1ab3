"""`ledger demo`: real work, verified, and tampered with in copies, in a folder of its own."""

from __future__ import annotations

import re
import time

from tests.reference.shell import User, files_of


def test_the_demo_takes_less_than_ten_seconds_and_touches_nothing_of_the_user(tmp_path):
    user = User(tmp_path)
    assert user("init").exit == 0
    before = files_of(tmp_path)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    start = time.monotonic()
    done = user("demo", env={"TMPDIR": str(temporary)})
    assert time.monotonic() - start < 10
    assert done.exit == 0, done.err
    assert files_of(tmp_path) == before
    assert not any(temporary.iterdir())
    assert re.search(r"recorded in (\S+)", done.out)[1].startswith(str(temporary))
    assert [line.rpartition(" ")[2] for line in done.out.splitlines() if re.search(r": exit \d$", line)] == [
        "1",
        "1",
        "1",
    ]
    assert re.search(r"^run word-count  completed", done.out, re.MULTILINE)
    assert re.search(r"^ok  .*: everything asked for was established$", done.out, re.MULTILINE)
    assert "does not prove that the recorder told the truth" in done.err


def test_the_demo_leaves_its_folder_where_asked_to_and_without_a_home(tmp_path):
    user = User(tmp_path)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    done = user("demo", "--keep", env={"TMPDIR": str(temporary), "HOME": str(tmp_path / "nowhere")})
    assert done.exit == 0, done.err
    (left,) = temporary.iterdir()
    assert str(left) in done.err
    assert (left / "ledger/journal").is_dir()
    assert not (tmp_path / "nowhere").exists()
