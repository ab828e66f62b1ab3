"""RFC 9162, 2.1, as it is written: lists in, hashes out, recursive, slow. The oracle for prover and verifier."""

from __future__ import annotations

from hashlib import sha256


def leaf(data):
    return sha256(b"\x00" + data).digest()


def node(left, right):
    return sha256(b"\x01" + left + right).digest()


def split(n):
    """The largest power of two smaller than n (i.e., k < n <= 2k)."""
    k = 1
    while k * 2 < n:
        k *= 2
    return k


def mth(d):
    """MTH(D_n), 2.1.1."""
    n = len(d)
    if n == 0:
        return sha256(b"").digest()
    if n == 1:
        return leaf(d[0])
    k = split(n)
    return node(mth(d[:k]), mth(d[k:]))


def path(m, d):
    """PATH(m, D_n), 2.1.3.1."""
    n = len(d)
    if n == 1:
        return []
    k = split(n)
    if m < k:
        return [*path(m, d[:k]), mth(d[k:])]
    return [*path(m - k, d[k:]), mth(d[:k])]


def proof(m, d):
    """PROOF(m, D_n), 2.1.4.1."""
    return subproof(m, d, complete=True)


def subproof(m, d, *, complete):
    """SUBPROOF(m, D_n, b), 2.1.4.1."""
    n = len(d)
    if m == n:
        return [] if complete else [mth(d)]
    k = split(n)
    if m <= k:
        return [*subproof(m, d[:k], complete=complete), mth(d[k:])]
    return [*subproof(m - k, d[k:], complete=False), mth(d[:k])]


def root_from_path(m, n, hashed, hashes):
    """The root that a path leads to, by undoing PATH step by step; None if its length is not that of a path."""
    if n == 1:
        return hashed if not hashes else None
    if not hashes:
        return None
    k = split(n)
    if m < k:
        below = root_from_path(m, k, hashed, hashes[:-1])
        return below and node(below, hashes[-1])
    below = root_from_path(m - k, n - k, hashed, hashes[:-1])
    return below and node(hashes[-1], below)


def roots_from_proof(m, n, old_root, hashes, *, complete=True):
    """(old, new) roots that a consistency proof leads to, by undoing SUBPROOF; None if its length is not that of one."""
    if m == n:
        if complete:
            return (old_root, old_root) if not hashes else None
        return (hashes[0], hashes[0]) if len(hashes) == 1 else None
    if not hashes:
        return None
    k = split(n)
    if m <= k:
        below = roots_from_proof(m, k, old_root, hashes[:-1], complete=complete)
        return below and (below[0], node(below[1], hashes[-1]))
    below = roots_from_proof(m - k, n - k, old_root, hashes[:-1], complete=False)
    return below and (node(hashes[-1], below[0]), node(hashes[-1], below[1]))


def accepts_inclusion(m, n, hashed, hashes, root):
    if not 0 <= m < n or any(len(h) != 32 for h in [hashed, root, *hashes]):
        return False
    return root_from_path(m, n, hashed, list(hashes)) == root


def accepts_consistency(m, n, old_root, new_root, hashes):
    if not 1 <= m <= n or any(len(h) != 32 for h in [old_root, new_root, *hashes]):
        return False
    return roots_from_proof(m, n, old_root, list(hashes)) == (old_root, new_root)
