"""Register: the newest note, or none, or a loud error."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ledger.errors import RegisterError
from ledger.storage.register import Register

NOTE = "ledger.invalid/abc\n12\nAAAA\n\n— ledger.invalid/abc BBBB\n".encode()


def test_an_absent_register_remembers_nothing_and_makes_nothing(tmp_path: Path) -> None:
    assert Register(tmp_path / "heads" / "a").read() is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("left", [b"", b"\0", b"\0" * 4096])
def test_what_a_loss_of_power_leaves_remembers_nothing(tmp_path: Path, left: bytes) -> None:
    (tmp_path / "a").write_bytes(left)
    assert Register(tmp_path / "a").read() is None


def test_the_note_written_is_the_note_read_by_everybody(tmp_path: Path) -> None:
    path = tmp_path / "state" / "heads" / "a"
    assert Register(path).write(NOTE)
    assert Register(path).read() == NOTE
    assert path.read_bytes() == NOTE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "notes",
    [
        [NOTE, NOTE.replace(b"12", b"13")],
        [NOTE, NOTE.replace(b"12", b"1234")],
        [NOTE.replace(b"12", b"1234"), NOTE],
        [NOTE + b"x" * 500 + b"\n", NOTE.replace(b"12", b"13") + b"x" * 500 + b"\n"],
    ],
    ids=["same length", "longer", "shorter", "longer than a sector"],
)
def test_a_newer_note_takes_the_whole_place_of_the_older(tmp_path: Path, notes: list[bytes]) -> None:
    register = Register(tmp_path / "a")
    for note in notes:
        assert register.write(note)
        assert (tmp_path / "a").read_bytes() == note
    assert [item.name for item in tmp_path.iterdir()] == ["a"]


def test_a_copy_under_a_second_name_keeps_the_old_note(tmp_path: Path) -> None:
    register = Register(tmp_path / "a")
    register.write(NOTE)
    os.link(tmp_path / "a", tmp_path / "backup")
    assert register.write(NOTE.replace(b"12", b"13"))
    assert (tmp_path / "backup").read_bytes() == NOTE
    assert register.read() == NOTE.replace(b"12", b"13")


@pytest.mark.parametrize(
    "content",
    [NOTE[:-1], NOTE[:10] + b"\0" + NOTE[11:], b"12\n", NOTE + b"x", NOTE * 2000],
    ids=["no last LF", "a NUL", "no empty line", "more after it", "too long"],
)
def test_a_register_that_is_no_note_is_an_error_and_never_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(RegisterError) as caught:
        Register(tmp_path / "a").read()
    assert caught.value.code == "register.unreadable"
    assert caught.value.hint is not None


def test_a_folder_in_its_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(RegisterError):
        Register(tmp_path / "a").read()
    assert not Register(tmp_path / "a").write(NOTE)


def test_a_state_folder_that_cannot_be_made_is_said_and_does_not_raise(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"a file where a folder should be")
    assert not Register(tmp_path / "state" / "heads" / "a").write(NOTE)


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_state_folder_is_said_and_does_not_raise(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        assert not Register(tmp_path / "a").write(NOTE)
    finally:
        tmp_path.chmod(0o700)


def test_a_link_in_its_place_is_replaced_and_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(NOTE)
    (tmp_path / "a").symlink_to(target)
    assert Register(tmp_path / "a").write(NOTE.replace(b"12", b"13"))
    assert target.read_bytes() == NOTE
    assert not (tmp_path / "a").is_symlink()
