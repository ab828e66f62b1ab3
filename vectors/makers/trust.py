"""Vectors of trust files."""

from __future__ import annotations

from vectors.makers import kit
from vectors.makers.case import File

BAD = "trust.malformed"


def table(kind: str, **members: str) -> str:
    return f"[[{kind}]]\n" + "".join(f"{name} = {value}\n" for name, value in members.items()) + "\n"


def quoted(text: str) -> str:
    return f'"{text}"'


def make() -> File:
    out = File(
        "trust",
        ("docs/spec/trust.md", "docs/spec/keys.md"),
        "misspelt restrictions, one key in two roles, weak and published keys",
    )

    def case(
        id_: str, text: str, comment: str, code: str | None = None, flags: str = "", *, allow: bool = True
    ) -> None:
        out.case(
            "trust",
            id_,
            comment,
            {"text": text, "allow_test_keys": allow},
            code=code,
            exit_=None if code is None else 2,
            flags=flags,
        )

    origin = table("origin", name=quoted(kit.ORIGIN), log_key=quoted(kit.LOG.id))
    issuer = table("issuer", name=quoted("build"), key=quoted(kit.ISSUER.id))
    approver = table("approver", name=quoted("ada"), key=quoted(kit.APPROVER.id), roles='["release"]')
    notary = table("notary", name=quoted("notary.example"), key=quoted(kit.NOTARY.id))
    case("trust", "quorum = 1\n\n" + origin + issuer + approver + notary, "A trust file with one of each.")
    case(
        "trust-test-keys",
        origin,
        "The same keys where vectors are not allowed: their private halves are published.",
        "trust.test_key",
        "published-key",
        allow=False,
    )
    case("trust-rfc-key", table("issuer", name=quoted("x"), key=quoted("ed25519:d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")),
         "A key of RFC 8032.", "trust.test_key", "published-key", allow=False)  # fmt: skip
    case("trust-empty", "", "An empty file pins nobody.", allow=False)
    case("trust-comment", "# nobody\n", "Nor does a comment.", allow=False)
    case("trust-not-toml", "[[origin]\n", "Not TOML.", BAD, "lax-parser")
    case("trust-json", '{"origin":[]}', "JSON.", BAD, "lax-parser")
    case(
        "trust-unknown-table",
        table("issuers", name=quoted("x")),
        "A table that there is not.",
        BAD,
        "misspelt-restriction",
    )
    case(
        "trust-unknown-member",
        issuer.rstrip() + f'\norigins = ["{kit.ORIGIN}"]\n',
        "A restriction misspelt: taken, it would widen trust.",
        BAD,
        "misspelt-restriction",
    )
    case("trust-restricted", issuer.rstrip() + f'\norigin = ["{kit.ORIGIN}"]\n', "The restriction spelt right.")
    case("trust-restricted-empty", issuer.rstrip() + "\norigin = []\n", "A restriction to nothing.", BAD, "empty-list")
    case("trust-no-key", table("issuer", name=quoted("build")), "A name without key.", BAD, "missing-member")
    case("trust-no-name", table("issuer", key=quoted(kit.ISSUER.id)), "A key without name.", BAD, "missing-member")
    case(
        "trust-key-upper",
        table("issuer", name=quoted("build"), key=quoted(kit.ISSUER.id.upper())),
        "A key in upper case.",
        BAD,
        "case-folding",
    )
    case(
        "trust-key-bare",
        table("issuer", name=quoted("build"), key=quoted(kit.ISSUER.public.hex())),
        "A key without algorithm.",
        BAD,
        "prefix",
    )
    case("trust-header", origin.rstrip() + f'\nheader = "{kit.digest(b"header")}"\n', "A pinned header.")
    case(
        "trust-header-short", origin.rstrip() + '\nheader = "sha256:00"\n', "A header that is no digest.", BAD, "length"
    )
    case(
        "trust-key-twice",
        issuer + table("issuer", name=quoted("deploy"), key=quoted(kit.ISSUER.id)),
        "One key under two names.",
        "trust.key_twice",
        "key-role",
    )
    case(
        "trust-key-two-roles",
        origin + table("issuer", name=quoted("build"), key=quoted(kit.LOG.id)),
        "One key in two roles.",
        "trust.key_twice",
        "key-role",
    )
    case(
        "trust-name-twice",
        issuer + table("issuer", name=quoted("build"), key=quoted(kit.OTHER_ISSUER.id)),
        "One name with two keys.",
        "trust.name_twice",
        "key-role",
    )
    case(
        "trust-name-two-roles",
        issuer + table("approver", name=quoted("build"), key=quoted(kit.APPROVER.id)),
        "One name in two roles, each with its key.",
    )
    neutral = "ed25519:01" + "00" * 31
    case(
        "trust-low-order",
        table("issuer", name=quoted("build"), key=quoted(neutral)),
        "A point of low order.",
        "key.low_order",
        "low-order",
    )
    wide = "ed25519:" + (kit.FIELD + 3).to_bytes(32, "little").hex()
    case(
        "trust-wide",
        table("issuer", name=quoted("build"), key=quoted(wide)),
        "An encoding that is not canonical.",
        "key.not_canonical",
        "non-canonical-point",
    )
    case("trust-quorum-0", "quorum = 0\n\n" + notary, "A quorum of none.")
    case("trust-quorum-all", "quorum = 1\n\n" + notary, "A quorum of all.")
    case("trust-quorum-more", "quorum = 2\n\n" + notary, "A quorum that can never be met.", BAD, "quorum")
    case("trust-quorum-minus", "quorum = -1\n\n" + notary, "A quorum below zero.", BAD, "quorum")
    case("trust-quorum-true", "quorum = true\n\n" + notary, "A boolean, which Python takes for 1.", BAD, "types quorum")
    case("trust-quorum-string", 'quorum = "1"\n\n' + notary, "A string.", BAD, "types quorum")
    case(
        "trust-origin-plus",
        table("origin", name=quoted("ledger+example"), log_key=quoted(kit.LOG.id)),
        "An origin that no ledger can have.",
        BAD,
        "origin",
    )
    return out
