"""Key files, with `cryptography` and `openssl`'s formats as the oracle."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import KeyFileError
from ledger.keys import PrivateKey
from ledger.storage import keyfile

SEED = bytes.fromhex("6b1d8a4c02f7e935b0cc51d6a87e3f2490ab13dd7c5e66f8e1240b9f83d7ac15")
PLAIN = serialization.NoEncryption()


def pem(key: object, protection: serialization.KeySerializationEncryption = PLAIN) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)  # type: ignore[attr-defined]


def place(path: Path, text: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(text)
    path.chmod(mode)
    return path


@given(st.binary(min_size=32, max_size=32).filter(lambda seed: len(set(seed)) > 1))
def test_the_plain_text_is_byte_for_byte_what_cryptography_writes(
    tmp_path_factory: pytest.TempPathFactory, seed: bytes
) -> None:
    theirs = ed25519.Ed25519PrivateKey.from_private_bytes(seed)
    folder = tmp_path_factory.mktemp("k")
    keyfile.write_key(folder / "ours.pem", PrivateKey.from_seed(seed))
    assert (folder / "ours.pem").read_bytes() == pem(theirs)
    read = keyfile.read_key(place(folder / "theirs.pem", pem(theirs)))
    assert read.seed == theirs.private_bytes_raw()
    assert read.public == theirs.public_key().public_bytes_raw()


def test_reading_and_writing_a_plain_key_does_not_load_cryptography(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from ledger.storage import keyfile; "
        f"p = Path({str(tmp_path / 'k.pem')!r}); keyfile.create_key(p); keyfile.read_key(p); "
        "sys.exit('cryptography' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_new_key_is_random_and_its_file_is_for_its_owner_only(tmp_path: Path) -> None:
    one = keyfile.create_key(tmp_path / "keys" / "a" / "one.pem")
    two = keyfile.create_key(tmp_path / "keys" / "a" / "two.pem")
    assert one.seed != two.seed
    assert stat.S_IMODE((tmp_path / "keys" / "a" / "one.pem").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "keys" / "a").stat().st_mode) == 0o700
    assert keyfile.read_key(tmp_path / "keys" / "a" / "one.pem").seed == one.seed


def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    key = keyfile.create_key(tmp_path / "k.pem")
    with pytest.raises(KeyFileError) as caught:
        keyfile.create_key(tmp_path / "k.pem")
    assert caught.value.code == "keyfile.exists"
    assert keyfile.read_key(tmp_path / "k.pem").seed == key.seed


def test_a_key_under_a_passphrase_opens_with_it_and_with_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "k.pem"
    key = keyfile.create_key(path, passphrase="größer")
    assert b"ENCRYPTED" in path.read_bytes()
    assert keyfile.read_key(path, passphrase="größer").seed == key.seed
    theirs = serialization.load_pem_private_key(path.read_bytes(), "größer".encode())
    assert isinstance(theirs, ed25519.Ed25519PrivateKey)
    assert theirs.private_bytes_raw() == key.seed
    for wrong in ("größes", None, ""):
        with pytest.raises(KeyFileError) as caught:
            keyfile.read_key(path, passphrase=wrong)
        assert caught.value.code == "keyfile.passphrase"


def test_a_passphrase_for_a_key_without_one_is_refused(tmp_path: Path) -> None:
    keyfile.create_key(tmp_path / "k.pem")
    with pytest.raises(KeyFileError) as caught:
        keyfile.read_key(tmp_path / "k.pem", passphrase="x")
    assert caught.value.code == "keyfile.passphrase"
    with pytest.raises(KeyFileError):
        keyfile.create_key(tmp_path / "new.pem", passphrase="")
    assert not (tmp_path / "new.pem").exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o700, 0o4600])
def test_a_mode_one_bit_looser_than_0600_is_refused_with_the_command_that_mends_it(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "my key.pem"
    keyfile.create_key(path)
    path.chmod(mode)
    with pytest.raises(KeyFileError) as caught:
        keyfile.read_key(path)
    assert caught.value.code == "keyfile.mode"
    assert caught.value.hint == f"run: chmod 600 '{path}'"


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_modes_for_the_owner_only_are_fine(tmp_path: Path, mode: int) -> None:
    key = keyfile.create_key(tmp_path / "k.pem")
    (tmp_path / "k.pem").chmod(mode)
    assert keyfile.read_key(tmp_path / "k.pem").seed == key.seed


def test_absent_links_folders_and_pipes_are_refused_each_with_its_code(tmp_path: Path) -> None:
    keyfile.create_key(tmp_path / "k.pem")
    (tmp_path / "link.pem").symlink_to(tmp_path / "k.pem")
    (tmp_path / "folder.pem").mkdir(mode=0o700)
    os.mkfifo(tmp_path / "pipe.pem", 0o600)
    for name, code in {
        "absent.pem": "keyfile.absent",
        "link.pem": "keyfile.link",
        "folder.pem": "keyfile.not_a_file",
        "pipe.pem": "keyfile.not_a_file",
    }.items():
        with pytest.raises(KeyFileError) as caught:
            keyfile.read_key(tmp_path / name)
        assert caught.value.code == code, name


def test_a_key_of_another_algorithm_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError) as caught:
        keyfile.read_key(place(tmp_path / "k.pem", pem(ec.generate_private_key(ec.SECP256R1()))))
    assert caught.value.code == "keyfile.algorithm"


def test_a_plain_text_with_another_prefix_is_not_taken_for_ed25519(tmp_path: Path) -> None:
    # Object identifier 1.3.101.110 is X25519: one byte away, the same length.
    text = pem(ed25519.Ed25519PrivateKey.from_private_bytes(SEED)).replace(b"K2VwBCIE", b"K2VuBCIE")
    with pytest.raises(KeyFileError) as caught:
        keyfile.read_key(place(tmp_path / "k.pem", text))
    assert caught.value.code == "keyfile.algorithm"


@pytest.mark.parametrize("text", [b"", b"-----BEGIN PRIVATE KEY-----\n", b"x" * 20_000, b"\xff\xfe", SEED])
def test_what_is_no_pem_is_refused(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(KeyFileError) as caught:
        keyfile.read_key(place(tmp_path / "k.pem", text))
    assert caught.value.code == "keyfile.malformed"


def test_a_pem_with_other_line_ends_reads_the_same(tmp_path: Path) -> None:
    text = pem(ed25519.Ed25519PrivateKey.from_private_bytes(SEED))
    for i, other in enumerate((text.replace(b"\n", b"\r\n"), b"a comment\n" + text, text.rstrip(b"\n"))):
        assert keyfile.read_key(place(tmp_path / f"{i}.pem", other)).seed == SEED


PUBLISHED = [
    # RFC 8032, 7.1: tests 1, 2 and 3.
    "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
    "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
    "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
    # RFC 8032, 7.1: tests 1024 and SHA(abc).
    "f5e5767cf153319517630f226876b86c8160cc583bc013744c6bf255f5cc0ee5",
    "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
    # RFC 8410, 10.3.
    "d4ee72dbf913584ad5b6d8f1f769f8ad3afe7c28cbf1d4fbe097a88f44755842",
    # RFC 9421, B.1.4.
    "9f8362f87a484a954e6e740c5b4c0e84229139a20aa8ab56ff66586f6a7d29c5",
    *(bytes([byte] * 32).hex() for byte in (0x00, 0x01, 0x11, 0x42, 0x47, 0x48, 0x52, 0xFF)),
    bytes(range(32)).hex(),
    bytes(range(1, 33)).hex(),
]


@pytest.mark.parametrize("seed", PUBLISHED)
def test_a_published_key_is_refused_and_one_a_bit_away_is_not(tmp_path: Path, seed: str) -> None:
    raw = bytes.fromhex(seed)
    near = bytes([raw[0] ^ 0x80]) + raw[1:]
    with pytest.raises(KeyFileError) as caught:
        keyfile.read_key(place(tmp_path / "p.pem", pem(ed25519.Ed25519PrivateKey.from_private_bytes(raw))))
    assert caught.value.code == "keyfile.published"
    read = keyfile.read_key(place(tmp_path / "n.pem", pem(ed25519.Ed25519PrivateKey.from_private_bytes(near))))
    assert read.seed == near


def test_a_ledger_gets_four_different_keys_and_says_whose_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "keys" / "abc"
    keys = keyfile.create_ledger_keys(folder, "ledger.invalid/abc")
    assert keys.next is not None
    assert len({keys.issuer.key, keys.log.key, keys.next.issuer.key, keys.next.log.key}) == 4
    assert (folder / "origin").read_text() == "ledger.invalid/abc\n"
    read, later = keyfile.read_ledger_keys(folder), keyfile.read_next_keys(folder)
    assert (read.issuer.key, read.log.key) == (keys.issuer.key, keys.log.key)
    assert (later.issuer.key, later.log.key) == (keys.next.issuer.key, keys.next.log.key)
    assert [item.name for item in folder.parent.iterdir()] == ["abc"]
    assert all(stat.S_IMODE(item.stat().st_mode) == 0o700 for item in (folder.parent, folder, folder / "next"))


def test_keys_of_an_origin_are_never_overwritten(tmp_path: Path) -> None:
    keys = keyfile.create_ledger_keys(tmp_path / "abc", "ledger.invalid/abc")
    with pytest.raises(KeyFileError) as caught:
        keyfile.create_ledger_keys(tmp_path / "abc", "ledger.invalid/abc")
    assert caught.value.code == "keyfile.exists"
    assert keyfile.read_ledger_keys(tmp_path / "abc").issuer.key == keys.issuer.key
    assert [item.name for item in tmp_path.iterdir()] == ["abc"]


def test_one_key_in_both_roles_is_refused(tmp_path: Path) -> None:
    keyfile.create_ledger_keys(tmp_path / "abc", "ledger.invalid/abc")
    (tmp_path / "abc" / "log.pem").unlink()
    os.link(tmp_path / "abc" / "issuer.pem", tmp_path / "abc" / "log.pem")
    with pytest.raises(KeyFileError) as caught:
        keyfile.read_ledger_keys(tmp_path / "abc")
    assert caught.value.code == "keyfile.same_key"


@pytest.mark.parametrize("where", ["k.pem", "K.PEM", "k.key", "sub/k.pem"])
@pytest.mark.parametrize("form", ["plain", "encrypted", "legacy", "note"])
def test_a_private_key_in_a_ledgers_folder_is_found(tmp_path: Path, where: str, form: str) -> None:
    key = ed25519.Ed25519PrivateKey.from_private_bytes(SEED)
    text = {
        "plain": pem(key),
        "encrypted": pem(key, serialization.BestAvailableEncryption(b"x")),
        "legacy": b"comment\n-----BEGIN EC PRIVATE KEY-----\n",
        "note": b"PRIVATE+KEY+example.com+00000000+AAAA\n",
    }[form]
    (tmp_path / where).parent.mkdir(exist_ok=True)
    (tmp_path / where).write_bytes(text)
    assert keyfile.folder_holds_key(tmp_path) == tmp_path / where


def test_public_keys_and_other_names_are_no_private_keys(tmp_path: Path) -> None:
    public = ed25519.Ed25519PrivateKey.from_private_bytes(SEED).public_key()
    text = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "log.pem").write_bytes(text)
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "0000000000000000.jsonl").write_bytes(b"{}")
    (tmp_path / "lock").write_bytes(b"")
    assert keyfile.folder_holds_key(tmp_path) is None


def test_the_text_of_a_key_shows_no_secret(tmp_path: Path) -> None:
    keys = keyfile.create_ledger_keys(tmp_path / "abc", "ledger.invalid/abc")
    assert keys.issuer.seed.hex() not in repr(keys)
    assert repr(keys.issuer.seed) not in repr(keys)
