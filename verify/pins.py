"""Pins: what the trust in use says of a ledger's keys and issuers."""

from __future__ import annotations

from ledger.errors import clip
from verify.issuers import Issuers
from verify.keyring import Keyring
from verify.report import Report, TrustUsed
from verify.trust import Trust

__all__ = ["check_issuers", "check_log", "judge_issuer", "trust_used"]


def trust_used(trust: Trust | None) -> TrustUsed | None:
    """Return digest and source of the trust in use."""
    return None if trust is None else TrustUsed(trust.digest, trust.source)


def check_log(report: Report, trust: Trust | None, keyring: Keyring) -> bool:
    """Report on the pinned log key and header; return whether the log key is pinned for this origin."""
    if keyring.continues is not None:
        older = keyring.continues
        report.notes.append(f"says that it continues {clip(older.origin)} from size {older.size}, root {older.root}")
    pinned = None if trust is None else trust.origins.get(keyring.origin)
    where = f"origin {keyring.origin}"
    if trust is None or pinned is None:
        # A key that is pinned for something else must not speak here.
        other = None if trust is None else trust.roles.get(keyring.first_log_key)
        if other is None:
            report.find("log key", "trust.log_key_unpinned", where=where, message=f"log key {keyring.first_log_key}")
        else:
            message = f"its log key is pinned for {other[0]} {other[1]}"
            report.find("log key", "trust.log_key_mismatch", where=where, message=message)
        return False
    if pinned.log_key != keyring.first_log_key:
        message = f"got {keyring.first_log_key}, expected {pinned.log_key}"
        report.find("log key", "trust.log_key_mismatch", where=where, message=message)
        return False
    if pinned.header is not None and pinned.header != keyring.header:
        message = f"got {keyring.header}, expected {pinned.header}"
        report.find("log key", "trust.header_mismatch", where=where, message=message)
        return False
    if len(keyring.log_keys) > 1 and pinned.header is None and _unpinned_header(trust, keyring):
        # Anybody can write a header that names the pinned key and commits a key of his own as the next one.
        message = (
            "the log key was rotated, and neither the header nor its issuer is pinned, which committed the next key"
        )
        report.find("log key", "trust.log_key_unpinned", where=where, message=message)
        return False
    report.ran("log key")
    return True


def _unpinned_header(trust: Trust, keyring: Keyring) -> bool:
    """Return whether no pinned issuer vouches for the header by its seal."""
    return trust.judge_issuer(keyring.issuer_name, keyring.first_issuer_key, keyring.origin) is not None


def check_issuers(report: Report, trust: Trust | None, keyring: Keyring, issuers: Issuers) -> None:
    """Report on every issuer that was seen: pinned, and its key believed from its first receipt to its last."""
    report.ran("issuers", len(issuers.numbers))
    for (name, key), number in issuers.numbers.items():
        first, last = issuers.first[number], issuers.last[number]
        where = f"issuer {name}"
        spoken = keyring.judge(key, last)
        if spoken is not None:
            report.find("issuers", spoken, where=f"entry {last}", message=f"issuer {name}, {key}")
        for role in sorted(issuers.roles[number]):
            code = judge_issuer(trust, name, keyring.anchor(name, key, first), keyring.origin, role)
            if code is not None:
                report.find("issuers", code, where=where, message=f"key {key}")


def judge_issuer(trust: Trust | None, name: str, key: str, origin: str, role: str) -> str | None:
    """Return the code that speaks against an issuer in a role, None if it is pinned for it or the keyring decides."""
    match role:
        case "":
            return None
        case "approver":
            return "trust.approver_unpinned" if trust is None else trust.judge_approver(name, key)
        case _:
            return "trust.issuer_unpinned" if trust is None else trust.judge_issuer(name, key, origin)
