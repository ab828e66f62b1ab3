"""A plain verifier of ledgers, from the pages of docs/spec: slow, whole in memory, each rule by a name that can be left out.

It shares with the real verifier the receipt schemas, the trust file's parser and libsodium, and nothing else. With every rule
it is an oracle for the vectors; with one left out it is a mutant that some vector has to kill.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256

from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from ledger.errors import FormatError, UnknownFormatError
from ledger.receipt import parse_receipt
from verify.codes import CODES, worst
from verify.trust import parse_trust
from verify.vectors import Answer

ZERO = "sha256:" + "0" * 64
ENTRY = re.compile(
    rb'\{"envelope":"(sha256:[0-9a-f]{64})","index":(0|[1-9][0-9]{0,15}),"keyring":(0|[1-9][0-9]{0,15}),'
    rb'"previous":"(sha256:[0-9a-f]{64})","receipt":"(sha256:[0-9a-f]{64})","recorded_at":"([0-9TZ:.-]{24})",'
    rb'"schema":"([a-z0-9./-]+)"\}'
)
ENVELOPE = re.compile(
    rb'\{"payload":(\{.*\}),"payload_type":"([a-z0-9!#$&^_.+/-]{3,255})","seals":\[(?:\{"key":"([a-z0-9-]+:[0-9a-f]{64})",'
    rb'"signature":"([A-Za-z0-9+/]+=*)"\})?\]\}'
)
TYPE = b"application/vnd.receipt-ledger.receipt+json"
LINKED = {"header", "approval", "resolution", "grant", "evaluation", "key", "import", "erasure", "hold", "repair"}
ALWAYS_SEALED = LINKED | {"opening", "run"}


def digest(data):
    return "sha256:" + sha256(data).hexdigest()


def mth(leaves):
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256(b"\x01" + mth(leaves[:k]) + mth(leaves[k:])).digest()


def signed(key, message, signature):
    try:
        VerifyKey(bytes.fromhex(key.partition(":")[2])).verify(message, signature)
    except (BadSignatureError, ValueError):
        return False
    return True


def real_day(text):
    months = [31, 28 + (int(text[:4]) % 4 == 0 and (int(text[:4]) % 100 != 0 or int(text[:4]) % 400 == 0))]
    months += [31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    return text[:1] != "0" and 1 <= int(text[5:7]) <= 12 and 1 <= int(text[8:10]) <= months[int(text[5:7]) - 1]


@dataclass
class Receipt:
    """One entry that was read, with its receipt where that could be read too."""

    index: int
    id: str
    value: dict | None
    sealed: bool = False
    children: list[str] = field(default_factory=list)

    @property
    def kind(self):
        return self.value["kind"] if self.value else ""

    @property
    def issuer(self):
        return (self.value["issuer"]["name"], self.value["issuer"]["key"])


class Plain:
    """One verification; `off` names the rules that it forgets."""

    def __init__(self, *off):
        self.off = frozenset(off)
        self.codes = []
        self.receipts = []
        self.pending = []
        self.leaves = []
        self.size = 0
        self.index = 0
        self.previous = ZERO
        self.keyring_index = 0
        self.time = ""
        self.last_head = ZERO
        self.head = None
        self.header = None
        self.keys = {"issuer": [], "log": []}
        self.next = {}
        self.retired = {}
        self.revoked = {}
        self.since = {}
        self.faults = False
        self.stray = False

    def find(self, rule, code):
        if rule not in self.off:
            self.codes.append(code)
            return True
        return False

    def answer(self, given, read):
        self.given = given
        self.trust = None
        if given.trust is not None:
            self.trust = parse_trust(given.trust.encode(), source="plain", allow_test_keys=True)
        parts = [(found.first_index, read(found.file)) for found in given.segments]
        for number, (first, data) in enumerate(parts):
            if first != self.index:
                self.find("segments", "journal.segment_missing")
                self.faults = True
            *lines, rest = data.split(b"\n")
            for line in lines:
                self.line(line)
            if number < len(parts) - 1 and (rest or self.pending):
                self.find("segments", "journal.damaged")
                self.faults = True
        self.tail(rest)
        if self.head is None:
            self.find("head-missing", "head.missing")
        else:
            self.check_signature(self.head, always=True)
        self.ids()
        self.tree()
        self.pins()
        if given.older is not None:
            self.continues(given, read)
        exit_ = worst(CODES[code].exit for code in self.codes)
        return Answer(exit_, tuple(self.codes))

    def continues(self, given, read):
        if worst(CODES[code].exit for code in self.codes) == 1:
            return
        older = Plain(*self.off)
        found = older.answer(given.model_copy(update={"segments": given.older, "memory": None, "older": None}), read)
        said = self.header.get("continues")
        if said is None:
            self.find("continues", "continues.mismatch")
        elif found.exit in (1, 4, 5):
            self.find("older", "check.unreachable")
        elif (
            said["origin"] != older.header["ledger"]
            or said["size"] > len(older.leaves)
            or bytes.fromhex(said["root"][7:]) != mth(older.leaves[: said["size"]])
        ):
            self.find("continues", "continues.mismatch")

    # Lines.

    def line(self, line):
        if line.startswith(b'{"head":'):
            self.head_line(line)
        elif line.startswith(b'{"entry":') and b',"envelope":{"payload":' in line and line.endswith(b"}}"):
            self.entry_line(line)
        else:
            self.find("lines", "line.malformed")
            self.faults = self.stray = True

    def entry_line(self, line):
        cut = line.index(b',"envelope":{"payload":')
        entry, envelope = line[9:cut], line[cut + 12 : -1]
        match = ENTRY.fullmatch(entry)
        if match is None or (not real_day(match[6].decode()) and "calendar" not in self.off):
            self.find("layout", "entry.malformed")
            self.faults = self.stray = True
            return
        envelope_digest, index, keyring, previous, id_, time, schema = (found.decode() for found in match.groups())
        if schema != "receipt-ledger.entry/v1":
            self.find("unknown", "format.unknown")
            envelope = b""
        if int(index) != self.index:
            self.faults |= self.find("index", "chain.index")
        if previous != self.previous:
            self.faults |= self.find("previous", "chain.previous")
        if int(keyring) != self.keyring_index:
            self.faults |= self.find("keyring", "chain.keyring")
        if envelope and digest(envelope) != envelope_digest:
            self.faults |= self.find("envelope-digest", "entry.envelope_digest")
        if time < self.time:
            self.find("time", "time.step_back")
        self.time = time
        self.index = int(index) + 1
        self.previous = digest(entry)
        self.pending.append((int(index), entry, id_, envelope))
        match = ENVELOPE.fullmatch(envelope)
        if (match and b'"kind":"key"' in match[1]) or b'"kind":"header"' in envelope:
            value = self.value_of(match[1]) if match else None
            if value and value.get("kind") in ("key", "header"):
                self.keyring_index = int(index)

    @staticmethod
    def value_of(payload):
        try:
            return json.loads(payload)
        except ValueError:
            return None

    def commit(self):
        for index, entry, id_, envelope in self.pending:
            prefix = b"" if "leaf-prefix" in self.off else b"\x00"
            self.leaves.append(sha256(prefix + entry).digest())
            self.receipt(index, id_, envelope)
        self.pending = []

    # Receipts.

    def receipt(self, index, id_, envelope):
        receipt = Receipt(index, id_, None)
        self.receipts.append(receipt)
        if not envelope:
            return
        match = ENVELOPE.fullmatch(envelope)
        if match is None:
            self.find("envelope", "envelope.malformed")
            return
        payload, type_, key, signature = match.groups()
        if digest(payload) != id_:
            self.faults |= self.find("receipt-id", "entry.receipt_id")
        try:
            parse_receipt(payload)
        except UnknownFormatError:
            self.find("unknown", "format.unknown")
            return
        except FormatError as error:
            canonical = error.code.startswith("canonical.")
            if self.find(
                "canonical" if canonical else "schema", "receipt.canonical" if canonical else "receipt.malformed"
            ):
                return
        value = self.value_of(payload)
        if value is None:
            return
        receipt.value = value
        receipt.children = value.get("children", [])
        if type_ != TYPE:
            self.find("unknown", "format.unknown")
        if value["ledger"] != (self.header or value)["ledger"]:
            self.find("foreign-ledger", "receipt.foreign_ledger")
        if key is None:
            if value["kind"] in ALWAYS_SEALED:
                self.find("seal-absent", "seal.absent")
        else:
            receipt.sealed = self.seal(value, payload, type_, key.decode(), signature)
        if (index == 0) != (value["kind"] == "header"):
            self.find("first-entry", "chain.first_entry")
        if index == 0 and value["kind"] == "header":
            self.start(value, id_)
        if value["kind"] == "key" and (receipt.sealed or "seal-absent" in self.off):
            self.rotate(index, value)

    def seal(self, value, payload, type_, key, signature):
        if key != value["issuer"]["key"] and self.find("seal-issuer", "seal.issuer"):
            return False
        raw = base64.b64decode(signature)
        message = b"DSSEv1 %d %b %d %b" % (len(type_), type_, len(payload), payload)
        if "pae" in self.off:
            message = payload
        return signed(key, message, raw) or not self.find("seal", "seal.invalid")

    # Keys.

    def start(self, value, id_):
        self.header = {**value, "id": id_}
        if value["format"] != "receipt-ledger/v1":
            self.find("unknown", "format.unknown")
        self.keys = {"issuer": [value["issuer"]["key"]], "log": [value["log_key"]]}
        self.next = dict(value["next"])

    def rotate(self, index, value):
        role = value["role"]
        line = self.keys[role]
        problems = {
            "key-commitment": self.next.get(role) != digest(bytes.fromhex(value["key"].partition(":")[2])),
            "key-retires": not line or value["retired"] != line[-1],
            "key-sealed-by-next": value["issuer"]["key"] != value["key"],
            "key-returns": value["key"] in self.keys["issuer"] + self.keys["log"],
            "key-from-index": "from_index" in value and (value["action"] == "rotate" or value["from_index"] > index),
            "key-issuer-name": value["issuer"]["name"] != self.header["issuer"]["name"],
        }
        for rule, holds in problems.items():
            if holds and self.find(rule, "key.chain"):
                return
        if "keyring-followed" in self.off:
            return
        self.retired[value["retired"]] = index
        self.since[value["key"]] = index
        if value["action"] == "revoke":
            self.revoked[value["retired"]] = value.get("from_index", index)
        line.append(value["key"])
        self.next[role] = value["next"].get(role)

    # Heads.

    def read_head(self, line):
        try:
            value = json.loads(line)
            if json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() != line or len(value) != 2:
                return None
            text, _, signatures = value["head"].rpartition("\n\n")
            origin, size, root, *more = (text + "\n").split("\n")[:-1]
        except (ValueError, KeyError):
            return None
        if more and "extension" not in self.off:
            return None
        if not re.fullmatch("0|[1-9][0-9]*", size) and "size-form" not in self.off:
            return None
        lines = [re.fullmatch("— (\\S+) (\\S+)", found) for found in signatures.split("\n")[:-1]]
        if not lines or None in lines:
            return None
        marks = [(found[1], base64.b64decode(found[2])) for found in lines]
        return {
            "text": text + "\n", "origin": origin, "size": int(size), "root": base64.b64decode(root), "marks": marks,
            "previous": value["previous_head"], "digest": digest(line),
        }  # fmt: skip

    def head_line(self, line):
        head = self.read_head(line)
        if head is None:
            self.find("head-form", "head.malformed")
            self.faults = True
            return
        before, entries = len(self.keys["log"]), len(self.pending)
        self.commit()
        changed = len(self.keys["log"]) != before
        for rule, code in self.head_problems(head, entries=entries):
            self.find(rule, code)
        self.size = self.index
        self.last_head = head["digest"]
        self.head = head
        self.stray = False
        self.check_signature(head, always=changed or "every-head" in self.given.require)

    def head_problems(self, head, *, entries=1):
        if not entries:
            yield "empty-commit", "head.empty"
        origin = self.header["ledger"] if self.header else head["origin"]
        if head["previous"] != self.last_head:
            yield "head-link", "head.link"
        if head["origin"] != origin:
            yield "head-origin", "head.origin"
        if head["size"] != self.index:
            yield "head-size", "head.size"
        elif not self.faults and head["root"] != mth(self.leaves):
            yield "head-root", "head.root"

    def key_of(self, head):
        origin = self.header["ledger"]
        key = self.keys["log"][-1]
        public = bytes.fromhex(key.partition(":")[2])
        return origin, key, sha256(origin.encode() + b"\n\x01" + public).digest()[:4]

    def check_signature(self, head, *, always):
        if self.header is None:
            return
        origin, key, mark = self.key_of(head)
        lines = [raw for name, raw in head["marks"] if (name, raw[:4]) == (origin, mark)]
        if "first-signature" in self.off:
            lines = [raw for name, raw in head["marks"] if name == origin][:1]
        if not lines:
            self.find("head-unsigned", "head.unsigned")
        elif always:
            for raw in lines:
                if not signed(key, head["text"].encode(), raw[4:]):
                    self.find("head-signature", "head.signature")

    # What follows the last head.

    def tail(self, rest):
        if not rest and not self.pending and not self.stray:
            return
        text = rest.rstrip(b"\0")
        if text.startswith(b'{"head":') and text.endswith(b'"}'):
            head = self.read_head(text)
            waiting, codes, self.codes = self.pending, self.codes, []
            self.commit()
            bad = head is None or any(rule not in self.off for rule, _ in self.head_problems(head))
            if not bad:
                self.check_signature(head, always=True)
                bad = any(CODES[code].exit for code in self.codes)
            self.codes = codes + self.codes
            if bad:
                self.codes = codes
                self.find("tail-head", "journal.damaged")
                del self.receipts[len(self.receipts) - len(waiting) :]
            else:
                self.head, self.size, self.last_head = head, self.index, head["digest"]
            return
        self.pending = []
        torn = text == b"" or b'{"entry":'.startswith(text[:9]) or b'{"head":'.startswith(text[:8])
        try:
            json.loads(text or b"x")
            whole = True
        except ValueError:
            whole = False
        if whole:
            line = ENTRY.match(text[9:])
            torn = line is not None and int(line[2]) == self.index and line[4].decode() == self.previous
        if b"\0" in text or self.faults or not torn:
            self.find("torn", "journal.damaged")
        else:
            self.find("torn-said", "journal.torn_tail")

    # The whole.

    def ids(self):
        for count in Counter(found.id for found in self.receipts).values():
            if count > 1:
                self.find("repeated-id", "receipt.repeated")

    def tree(self):
        runs = {found.id: found for found in self.receipts if found.kind == "opening"}
        roots = {}
        committed = Counter()
        by_id = {}
        parents = {}
        for found in self.receipts:
            if found.value is None:
                continue
            run = found.id if found.kind == "opening" else found.value.get("run")
            if found.kind not in LINKED | {"opening"}:
                if run not in by_id:
                    self.find("unknown-run", "run.unknown_opening")
                    continue
                if run in roots:
                    self.find("after-close", "tree.after_close")
                    continue
            elif found.kind == "opening" and run in by_id:
                self.find("reopened", "run.reopened")
            for child in found.children:
                known = by_id.get(child)
                outer = (
                    known is not None
                    and known.kind == "run"
                    and runs[known.value["run"]].value.get("parent_opening") == run
                )
                inside = known is not None and (
                    outer or (known.kind not in LINKED and self.run_of(known) == run and known.kind != "run")
                )
                if not inside:
                    if self.find("child-missing", "tree.missing"):
                        continue
                    if known is None:
                        continue
                committed[child] += 1
                if committed[child] > 1:
                    self.find("repeated-child", "tree.repeated")
                else:
                    parents[child] = found
            self.order(found, by_id)
            by_id[found.id] = found
            if found.kind == "run":
                roots[run] = found
        self.complete(roots, committed, runs)
        self.attribution(roots, parents)
        self.depth(parents)
        for run in runs:
            if run not in roots:
                closed = "closed" in self.given.require
                self.find("open-run", "run.open" if closed else "run.listed_open")

    def run_of(self, found):
        return found.id if found.kind == "opening" else found.value.get("run")

    def order(self, found, by_id):
        first = found.children[0] if found.children else None
        if found.kind == "run" and first != found.value["run"]:
            self.find("order", "tree.order")
        if found.kind == "outcome":
            intent = by_id.get(found.value["intent"])
            if first != found.value["intent"] or (intent is not None and intent.kind != "intent"):
                self.find("order", "tree.order")
        if found.kind != "run" and any(by_id[child].kind == "opening" for child in found.children if child in by_id):
            self.find("order", "tree.order")

    def complete(self, roots, committed, runs):
        for found in self.receipts:
            if found.value is None or found.kind in LINKED:
                continue
            run = found.value["run"] if found.kind != "opening" else found.id
            if found.kind == "run":
                run = runs[run].value.get("parent_opening") if run in runs else None
            root = roots.get(run)
            if root is not None and found.index < root.index and not committed[found.id]:
                self.find("left-out", "tree.uncommitted")

    def attribution(self, roots, parents):
        for found in self.receipts:
            if found.value is None or found.sealed or found.kind in ALWAYS_SEALED:
                continue
            above = parents.get(found.id)
            while above is not None and not above.sealed:
                above = parents.get(above.id)
            if "nearest" in self.off:
                top = above
                while top is not None and parents.get(top.id) is not None:
                    top = parents[top.id]
                above = top
            if above is not None:
                same = above.issuer == found.issuer
                if "issuer-name" in self.off:
                    same = above.issuer[1] == found.issuer[1]
                if "issuer-key" in self.off:
                    same = above.issuer[0] == found.issuer[0]
                if not same:
                    self.find("borrowed", "receipt.borrowed_issuer")

    def depth(self, parents):
        for found in self.receipts:
            levels = 0
            above = found
            while above.id in parents and levels < 1000:
                above = parents[above.id]
                levels += 1
            if levels > 64:
                self.find("depth", "tree.too_deep")

    # Trust and memory.

    def pins(self):
        if self.header is None:
            return
        origin, first = self.header["ledger"], self.keys["log"][0]
        pin = self.trust.origins.get(origin) if self.trust else None
        if pin is None:
            other = self.trust is not None and first in self.trust.roles
            self.find("log-pin", "trust.log_key_mismatch" if other else "trust.log_key_unpinned")
        elif pin.log_key != first:
            self.find("log-pin", "trust.log_key_mismatch")
        elif pin.header not in (None, self.header["id"]):
            self.find("header-pin", "trust.header_mismatch")
        else:
            self.memory(origin)
        for found in self.receipts:
            if found.value is not None:
                self.judge(found, origin)

    def judge(self, found, origin):
        name, key = found.issuer
        if key in self.revoked and found.index >= self.revoked[key]:
            self.find("revoked", "key.revoked")
        elif key in self.retired and found.index >= self.retired[key]:
            self.find("retired", "key.retired")
        if found.kind == "key":
            return
        if self.trust is None:
            self.find("issuer-pin", "trust.issuer_unpinned")
            return
        approver = found.kind == "approval"
        pin = (self.trust.approvers if approver else self.trust.issuers).get(name)
        if pin is None:
            code = "trust.approver_unpinned" if approver else "trust.issuer_unpinned"
            self.find("issuer-pin", "trust.issuer_mismatch" if key in self.trust.roles else code)
            return
        anchor = key
        if name == self.header["issuer"]["name"] and key in self.keys["issuer"]:
            anchor = self.keys["issuer"][0]
            if found.index < self.since.get(key, 0):
                self.find("early-key", "trust.issuer_mismatch")
        if pin.key != anchor or (not approver and pin.origin is not None and origin not in pin.origin):
            self.find("issuer-pin", "trust.issuer_mismatch")

    def memory(self, origin):
        if self.head is None or any(CODES[code].exit == 1 for code in self.codes):
            return
        if self.given.memory is None:
            needed = "memory" in self.given.require
            self.find("memory", "head.unseen" if needed else "head.first_seen")
            return
        text, _, signatures = self.given.memory.rpartition("\n\n")
        text += "\n"
        lines = [found.split(" ") for found in signatures.split("\n")[:-1]]
        known = any(
            name == origin and signed(key, text.encode(), base64.b64decode(raw)[4:])
            for _, name, raw in lines
            for key in self.keys["log"]
        )
        if not known:
            self.find("memory-key", "head.unreconciled")
            return
        size, root = int(text.split("\n")[1]), base64.b64decode(text.split("\n")[2])
        if size > self.size:
            self.find("shorter", "head.shorter")
        elif mth(self.leaves[:size]) != root:
            self.find("forked", "head.forked")
