"""Timestamp authorities for tests: certificates by `cryptography`, tokens by `openssl cms` or answers by `openssl ts`."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

OPENSSL = shutil.which("openssl")
STAMPING, CODE = ExtendedKeyUsageOID.TIME_STAMPING, ExtendedKeyUsageOID.CODE_SIGNING
CONFIG = """
[tsa]
serial = {folder}/serial
signer_cert = {folder}/signer.pem
signer_key = {folder}/signer.key
default_policy = 1.2.3.4.1
signer_digest = sha256
digests = sha256
accuracy = secs:1
ess_cert_id_alg = sha256
"""


def der(tag: int, *parts: bytes) -> bytes:
    """Return one DER element."""
    content = b"".join(parts)
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    width = (size.bit_length() + 7) // 8
    return bytes([tag, 0x80 | width]) + size.to_bytes(width, "big") + content


def tst_info(imprint: bytes, time: str, *, nonce: int | None = 7, seconds: int | None = None) -> bytes:
    """Return a TSTInfo (RFC 3161, 2.4.2) over a SHA-256 digest, at a GeneralizedTime."""
    algorithm = der(0x30, bytes.fromhex("0609608648016503040201"), b"\x05\x00")
    return der(
        0x30,
        b"\x02\x01\x01",
        bytes.fromhex("06042a030401"),
        der(0x30, algorithm, der(0x04, imprint)),
        b"\x02\x01\x2a",
        der(0x18, time.encode()),
        b"" if seconds is None else der(0x30, der(0x02, bytes([seconds]))),
        b"" if nonce is None else der(0x02, nonce.to_bytes(1, "big")),
    )


@dataclass(frozen=True)
class Authority:
    """A root and a signer in a folder, valid between two years; `pem` is the root's certificate."""

    folder: Path
    pem: str

    @classmethod
    def made(cls, folder: Path, *, years: tuple[int, int] = (2020, 2040), usage=(STAMPING,), critical=True, name="TSA"):
        folder.mkdir(parents=True)
        root_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        root_name, own = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in (f"{name} root", name))
        start, end = datetime(2000, 1, 1, tzinfo=UTC), datetime(2060, 1, 1, tzinfo=UTC)
        root = _certificate(root_name, root_name, root_key, root_key, start, end)
        root = root.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        begin, stop = (datetime(year, 1, 1, tzinfo=UTC) for year in years)
        leaf = _certificate(own, root_name, key, root_key, begin, stop)
        leaf = leaf.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        if usage:
            leaf = leaf.add_extension(x509.ExtendedKeyUsage(usage), critical=critical)
        pems = [each.sign(root_key, hashes.SHA256()).public_bytes(Encoding.PEM) for each in (root, leaf)]
        private = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        for file, data in (
            ("root.pem", pems[0]),
            ("signer.pem", pems[1]),
            ("signer.key", private),
            ("serial", b"01\n"),
        ):
            (folder / file).write_bytes(data)
        (folder / "ts.cnf").write_text(CONFIG.format(folder=folder))
        return cls(folder, pems[0].decode())

    def token(self, covered: bytes, time: str = "20260601120000Z", *, ess: bool = True, **options) -> bytes:
        """Return a timestamp token over bytes, made by `openssl cms`; without `ess` it does not name its signer's certificate."""
        (self.folder / "tst").write_bytes(tst_info(sha256(covered).digest(), time, **options))
        return _run(
            "cms", "-sign", "-binary", "-nodetach", "-outform", "DER", "-md", "sha256", *(("-cades",) if ess else ()),
            "-econtent_type", "1.2.840.113549.1.9.16.1.4", "-in", self.folder / "tst",
            "-signer", self.folder / "signer.pem", "-inkey", self.folder / "signer.key",
        )  # fmt: skip

    def reply(self, query: bytes) -> bytes:
        """Return the answer of `openssl ts` to a query, at this moment."""
        (self.folder / "query").write_bytes(query)
        return _run(
            "ts", "-reply", "-config", self.folder / "ts.cnf", "-section", "tsa", "-queryfile", self.folder / "query"
        )


def _certificate(subject, issuer, key, signer, start, end):
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - timedelta(0))
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )


def _run(*arguments) -> bytes:
    done = subprocess.run([OPENSSL, *map(str, arguments)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout
