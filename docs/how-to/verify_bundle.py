"""Verify a bundle of receipt-ledger with Python and PyNaCl alone: one file to read, none of the project's code.

    python verify_bundle.py bundle.json ORIGIN=ed25519:... ISSUER=ed25519:...

Exit 0: it holds, under the keys given. 1: it does not. 2: usage. 3: it does as far as it goes: a key was not given, the run is
open, something is unknown here. 4: the keys given name another key, or a key was out of force where it was used.

Not checked: members of each kind, artifacts' sizes and places, counter-seals, header id, newer heads (docs/spec/bundles.md).
"""

import base64
import hashlib
import json
import re
import sys
from itertools import pairwise
from pathlib import Path

from nacl.exceptions import CryptoError
from nacl.signing import VerifyKey

SEALED = set("header opening run approval resolution grant evaluation key import erasure hold repair".split())
KINDS = SEALED | set("intent outcome decision step".split())
KNOWN = "application/vnd.receipt-ledger.receipt+json", "receipt-ledger.receipt/v1"
BUNDLE = set("checkpoint items keyring last schema subject".split())
ENTRY = set("envelope index keyring previous receipt recorded_at schema".split())
findings: dict[int, list[str]] = {1: [], 3: [], 4: []}


def need(holds: object, message: str, code: int = 1) -> None:
    if not holds:
        findings[code].append(message)
        if code == 1:
            raise ValueError(message)


def encode(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def unbase64(text: str, size: int | None = None) -> bytes:
    data = base64.b64decode(text, validate=True)
    need(base64.b64encode(data).decode() == text and size in {None, len(data)}, "base64 that is not exact")
    return data


def signed(key: str, signature: bytes, message: bytes) -> bool:
    try:
        return bool(VerifyKey(bytes.fromhex(key[8:])).verify(message, signature))
    except CryptoError:
        return False


def root_of(entry: bytes, index: int, size: int, proof: list[str]) -> bytes | None:
    """Return the root that an inclusion proof leads to, as RFC 9162, 2.1.3.2 has it."""
    number, last, running = index, size - 1, hashlib.sha256(b"\x00" + entry).digest()
    for sibling in (unbase64(text, 32) for text in proof):
        need(last, "a proof is too long")
        right = number & 1 or number == last
        running = hashlib.sha256(b"\x01" + (sibling + running if right else running + sibling)).digest()
        while right and number and not number & 1:
            number, last = number >> 1, last >> 1
        number, last = number >> 1, last >> 1
    return running if last == 0 else None


class Bundle:
    """A bundle whose entries are under its head and whose seals verify; `follow` and `cover` check the rest."""

    def __init__(self, data: bytes) -> None:
        value = json.loads(data.decode(), parse_float=str, parse_constant=str)  # which do not encode back
        more = {name for name in ("artifacts", "counter_seals", "covers") if value.get(name)}
        need(encode(value) == data, "not canonical JSON")
        need((value["schema"], value.keys() - more) == ("receipt-ledger.bundle/v1", BUNDLE), "no bundle of version 1")
        self.text, _, lines = value["checkpoint"].rpartition("\n\n")
        head = re.fullmatch("([!-*,-~]+)\n([1-9][0-9]{0,15})\n([A-Za-z0-9+/]{43}=)", self.text)
        need(head and re.fullmatch("(\u2014 [^ \n]+ [^ \n]+\n)+", lines), "the checkpoint is no signed head")
        self.subject, self.origin, self.size, self.root = value["subject"], head[1], int(head[2]), unbase64(head[3], 32)
        lines = map(str.split, lines.split("\n")[:-1])
        self.signatures = [unbase64(line[2]) for line in lines if line[1] == self.origin]
        groups = [list(map(self.item, value.get(name, []))) for name in ("keyring", "items", "covers")]
        self.keys, self.rows, self.covers = groups
        need(all(a["index"] < b["index"] for group in groups for a, b in pairwise(group)), "items are not in order")
        last, places = self.item(value["last"]), [each["index"] for each in self.keys]
        need(last["index"] == self.size - 1, "`last` is not the last entry")
        for each in (*self.keys, *self.rows, *self.covers, last):
            newest = max((index for index in places if index < each["index"]), default=0)
            need(each["keyring"] == newest, f"entry {each['index']}: a key receipt is hidden")
        for each in value.get("artifacts", []):
            need(digest(unbase64(each["data"])) == each["digest"] and len(each) == 2, "an artifact is altered")
        need("counter_seals" not in value, "counter-seals were not checked", 3)

    def item(self, value: dict) -> dict:
        """Return an entry with its receipt as `value`, whether a seal of its own holds, and its bytes."""
        entry, envelope, index = value["entry"], value.get("envelope"), value["entry"]["index"]
        where = f"entry {index}"
        need(value.keys() == {"entry", "proof"} | ({"envelope"} & value.keys()), f"{where}: other members")
        need(entry.keys() == ENTRY and type(index) is int and 0 <= index < self.size, f"{where}: no entry")
        need(root_of(encode(entry), index, self.size, value["proof"]) == self.root, f"{where}: not under the head")
        need(entry["schema"] == "receipt-ledger.entry/v1", f"{where}: an unknown schema", 3)
        if envelope is None:
            return entry
        receipt, seals, type_ = envelope["payload"], envelope["seals"], envelope["payload_type"]
        payload = encode(receipt)
        need(digest(payload) == entry["receipt"] and digest(encode(envelope)) == entry["envelope"], f"{where}: altered")
        need(envelope.keys() == {"payload", "payload_type", "seals"} and len(seals) < 2, f"{where}: no envelope")
        known = (type_, receipt.get("schema")) == KNOWN and receipt.get("kind") in KINDS
        if not (known and re.fullmatch("ed25519:[0-9a-f]{64}", receipt["issuer"]["key"])):
            findings[3].append(f"{where}: of a type, schema, kind or key that is unknown here")
            return {**entry, "value": {}, "sealed": False, "bytes": encode(entry)}
        for each in seals:
            message = b"DSSEv1 %d %b %d %b" % (len(type_), type_.encode(), len(payload), payload)
            need(each["key"] == receipt["issuer"]["key"] and len(each) == 2, f"{where}: a seal by another key")
            need(signed(each["key"], unbase64(each["signature"], 64), message), f"{where}: its seal does not verify")
        need(seals or receipt["kind"] not in SEALED, f"{where}: no seal")
        need(receipt["ledger"] == self.origin, f"{where}: of another ledger")
        return {**entry, "value": receipt, "sealed": bool(seals), "bytes": encode(entry)}

    def follow(self, given: dict[str, str]) -> None:
        """Follow the keyring from the header; check the head's signature, and every issuer against the keys given."""
        header = self.keys[0]["value"]
        need(self.keys[0]["index"] == 0 and header["kind"] == "header", "the keyring does not start at the header")
        name, until, commitment = header["issuer"]["name"], {}, dict(header["next"])
        chain = {"log": [header["log_key"]], "issuer": [header["issuer"]["key"]]}
        for each in self.keys[1:]:
            key, role, at = each["value"], each["value"]["role"], each["index"]
            need(key["kind"] == "key" and key["issuer"] == {"key": key["key"], "name": name}, f"entry {at}: another's")
            need(digest(bytes.fromhex(key["key"][8:])) == commitment.get(role), f"entry {at}: a key nobody committed")
            need(key["retired"] == chain[role][-1], f"entry {at}: it retires a key that is not in force")
            need(key["key"] not in chain["log"] + chain["issuer"], f"entry {at}: a key that was in force before")
            until[key["retired"]] = key.get("from_index", at) if key["action"] == "revoke" else at
            chain[role].append(key["key"])
            commitment[role] = key["next"].get(role)
        log, pins = chain["log"][-1], {(self.origin, chain["log"][0])}
        id_ = hashlib.sha256(self.origin.encode() + b"\n\x01" + bytes.fromhex(log[8:])).digest()[:4]
        mine = [line[4:] for line in self.signatures if line[:4] == id_]
        need(mine and all(signed(log, each, (self.text + "\n").encode()) for each in mine), "the head's signature")
        for each in (*self.keys[:1], *self.rows, *self.covers):
            issuer = each["value"].get("issuer", header["issuer"])
            ours = issuer["name"] == name and issuer["key"] in chain["issuer"]
            pins.add((issuer["name"], chain["issuer"][0] if ours else issuer["key"]))
            in_force = each["index"] < until.get(issuer["key"], self.size)
            need(in_force, f"entry {each['index']}: its key is out of force", 4)
        for who, key in sorted(pins):
            need(who in given or key in given.values(), f"no key was given for {who}, it uses {key}", 3)
            need({given.get(who)} <= {key, None}, f"another key was given for {who}, it uses {key}", 4)
            need(key not in given.values() or who in given, f"another name than {who} was given for {key}", 4)

    def cover(self) -> None:
        """Check that the subject is there and whole, and that a seal covers every receipt of it."""
        rows, parents = {each["receipt"]: each for each in (*self.rows, *self.covers)}, {}
        for each in sorted(rows.values(), key=lambda row: row["index"]):
            children, run = each["value"].get("children", []), each["value"].get("run")
            first = each["value"].get({"outcome": "intent", "run": "run"}.get(each["value"].get("kind")))
            need(first in {None, *children[:1]}, f"entry {each['index']}: the first child is another")
            for child in children:
                below = rows.get(child, {}).get("value") or {"run": run}
                start = rows.get(below.get("run"), {}).get("value", {}) if below.get("kind") == "run" else {}
                need(run in (below.get("run", child), start.get("parent_opening")), f"{child} is of another run")
                need(child not in parents, f"{child} is committed twice")
                need(child not in rows or rows[child]["index"] < each["index"], f"{child} follows what commits it")
                parents[child] = each
        span = re.fullmatch("(0|[1-9][0-9]*):([1-9][0-9]*)", self.subject)
        tree = self.rows if span else [rows[self.subject]]
        if span:
            need(tree and [each["index"] for each in tree] == list(range(*map(int, span.groups()))), "not the range")
            chained = all(after["previous"] == digest(before["bytes"]) for before, after in pairwise(tree))
            need(chained, "an entry follows another one than the one before it")
        else:
            for each in tree:
                tree.extend(rows[child] for child in each["value"].get("children", []))
            need(not self.covers and tree[0]["value"]["kind"] != "opening", "the run is open", 3)
        for each in (row for row in tree if row["value"]):
            above = each
            while above and not above["sealed"]:
                above = parents.get(above["receipt"])
            need(above, f"entry {each['index']}: no seal covers it", 3)
            ours, theirs = each["value"], (above or each)["value"]
            same = all(ours.get(name) == theirs.get(name) for name in ("issuer", "ledger", "run"))
            need(same, f"entry {each['index']}: the seal above it is of another issuer, ledger or run")


if __name__ == "__main__":
    path, *pairs = sys.argv[1:] or [""]
    if not Path(path).is_file() or not all("=" in pair for pair in pairs):
        sys.exit(print(__doc__) or 2)
    try:
        bundle = Bundle(Path(path).read_bytes())
        bundle.follow(dict(pair.rsplit("=", 1) for pair in pairs))
        bundle.cover()
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        findings[1] = findings[1] or [f"malformed: {error!r}"]
    code = next((code for code in (1, 4, 3) if findings[code]), 0)
    said = findings.get(code) or [f"ok: {bundle.subject} under head {bundle.size} of {bundle.origin}"]
    sys.exit(print("\n".join(ascii(each)[1:-1] for each in dict.fromkeys(said))) or code)
