"""Mutants of the verifiers of files and trees: one rule is taken out of a right verifier, and a vector says so.

What is put in the place of a function is the mutant, not a double: everything around it runs as it is.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from ledger import bundle as bundle_format
from ledger import canonical
from ledger import tlogproof as tlog_format
from ledger.bundle import Item
from ledger.checkpoint import head_of, open_head
from ledger.counterseal import parse_counter_seal
from ledger.digest import digest
from ledger.entry import parse_entry
from ledger.envelope import Envelope, Seal, parse_envelope
from ledger.errors import LedgerError, SignatureError
from ledger.keys import parse_base64
from ledger.note import Note, parse_note, print_note
from vectors import generate
from verify import bundle, consistency, cosignature, counterseal, equivocation, proof, published, tiles
from verify.errors import ProofError
from verify.report import Covered
from verify.vectors import parse_vectors, run_case

VECTORS = Path(generate.__file__).parent
CASES = {
    f"{path.stem}:{case.id}": case
    for path in sorted(VECTORS.glob("*.json"))
    for case in parse_vectors(path.read_bytes()).cases
    if case.check in ("file", "published")
}


def read(name):
    return (VECTORS / name).read_bytes()


def passes(name):
    try:
        return run_case(CASES[name], read=read).passed
    except LedgerError:
        raise
    except Exception:  # noqa: BLE001  whatever a mutant does wrong
        return False


class Equal(str):
    """A digest that is equal to every other."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False


def nothing(*_, **__):
    return None


def true(*_, **__):
    return True


# Heads.


def first_of_name(note, *, origin, log_key):
    """Judge the first line that bears the name, whoever's it is."""
    head, parsed = head_of(note), parse_note(note)
    line = next((each for each in parsed.signatures if each.name == origin), None)
    if line is None:
        raise SignatureError("no line", code="note.unsigned")
    try:
        VerifyKey(bytes.fromhex(log_key.partition(":")[2])).verify(parsed.text.encode(), line.signature)
    except (BadSignatureError, ValueError) as error:
        raise SignatureError("bad", code="note.bad_signature") from error
    return head


def good_among_bad(note, *, origin, log_key):
    """Take the line that verifies, and leave bad ones of the same key aside."""
    parsed = parse_note(note)
    for line in parsed.signatures:
        try:
            return open_head(print_note(Note(parsed.text, (line,))), origin=origin, log_key=log_key)
        except SignatureError as error:
            last = error
    raise last


def any_head(note, *, origin, log_key):
    return head_of(note)


# Proofs.


def any_size(*, leaf, index, size, proof, root):
    """Take a proof that leads to the root in a tree of any size."""
    for other in range(index + 1, 20):
        try:
            return right_inclusion(leaf=leaf, index=index, size=other, proof=proof, root=root)
        except ProofError:
            continue
    raise ProofError("no size", code="proof.inclusion")


def without_length(*, leaf, index, size, proof, root):
    """Fold what there is, as far as it is needed, and leave the rest."""
    for count in range(len(proof) + 1):
        try:
            return right_inclusion(leaf=leaf, index=index, size=size, proof=proof[:count], root=root)
        except ProofError as error:
            last = error
    raise last


right_inclusion = proof.verify_inclusion
right_reconcile = published.reconcile


# Bundles.


def last_of_any_index(self, items):
    last = self._bundle.last
    if self._check_leaf(Item(last.entry, b"", last.proof)):
        self._check_keyring_of(parse_entry(last.entry))


def last_without_proof(self, items):
    entry = parse_entry(self._bundle.last.entry)
    if entry.index != self._head.size - 1:
        self._report.find("entries", "chain.index")
    self._check_keyring_of(entry)


def last_without_keyring(self, items):
    last = self._bundle.last
    if parse_entry(last.entry).index != self._head.size - 1:
        self._report.find("entries", "chain.index")
    self._check_leaf(Item(last.entry, b"", last.proof))


def no_subject(self):
    return Covered(), ()


def presence_only(report, carried, *, payloads, erasures, asked):
    for each in carried:
        report.ran("artifacts")
        if digest(each.data) != each.digest:
            report.find("artifacts", "artifact.altered", where=each.digest)


def digests_not_asked(report, carried, *, payloads, erasures, asked):
    report.ran("artifacts")


def any_erasure(report, carried, *, payloads, erasures, asked):
    if asked and list(erasures):
        report.inform("artifacts", "artifact.erased")
    else:
        right_artifacts(report, carried, payloads=payloads, erasures=erasures, asked=asked)


def everybody_attributed(self, chosen):
    return Covered(len(chosen), 0, 0), []


def issuer_key_only(self, chosen):
    """Compare nothing but names, of whatever is above."""
    right = self._report.find
    self._report.find = lambda name, code, **more: (
        None if code == "receipt.borrowed_issuer" else right(name, code, **more)
    )
    try:
        return right_attribute(self, chosen)
    finally:
        del self._report.find


def round_trip(data):
    return bundle_format.parse_bundle(canonical.encode(json.loads(data), max_depth=64))


def without_counter_seals(given, **more):
    return right_bundle(replace(given, counter_seals=()), **more)


def never_closed(given, **more):
    return right_bundle(given, **{**more, "options": replace(more["options"], closed=False)})


right_artifacts = bundle.check_artifacts
right_attribute = bundle.Branch._attribute
right_bundle = bundle.verify_bundle


# What notaries give.


def seal_not_verified(document):
    try:
        return parse_counter_seal(parse_envelope(document).payload), ("", "")
    except LedgerError as error:
        return None, ("counterseal.malformed", str(error))


def name_only(self, name, key):
    return None if name in self.notaries else "trust.notary_unpinned"


def key_only(self, name, key):
    return None if key in self.roles else "trust.notary_unpinned"


class _Every(set):
    def add(self, item):
        super().add((item, len(self)))


def seals_counted():
    return right_heard(_Every())


def any_head_covers(self, notary, size, time, kind):
    self.heard.counted.add(notary)


def no_quorum(report, carried, *, subject, trust, required):
    return right_counter_seals(report, carried, subject=subject, trust=replace(trust, quorum=0), required=required)


def by_name(note, trust):
    names = {line.name for line in note.signatures} & trust.notaries.keys()
    return cosignature.Cosigners(tuple(cosignature.Cosigned(name, None) for name in names), ())


def by_seal_key(note, trust):
    pins = {name: each.model_copy(update={"cosigner": each.key}) for name, each in trust.notaries.items()}
    return right_cosigners(note, replace(trust, notaries=pins))


right_heard = counterseal._Heard
right_counter_seals = counterseal.check_counter_seals
right_cosigners = cosignature.cosigners_of


# The smaller files.


def index_of_entry(data):
    found = tlog_format.parse_tlog_proof(data)
    return replace(found, index=parse_entry(found.extra).index)


def lax_dsse(data):
    value = json.loads(data)
    first = value["signatures"][0]
    return Envelope(
        parse_base64(value["payload"].replace("-", "+").replace("_", "/")),
        value["payloadType"],
        Seal(first["keyid"], parse_base64(first["sig"])),
    )


def bare_payload(envelope):
    try:
        VerifyKey(bytes.fromhex(envelope.seal.key[8:])).verify(envelope.payload, envelope.seal.signature)
    except (BadSignatureError, ValueError) as error:
        raise SignatureError("bad", code="signature.invalid") from error


def every_key_at_once(items, size):
    return right_keyring_at(items, 1 << 30)


def path_not_needed(report, older, newer, path):
    return "two heads"


def path_shows_a_fork(report, older, newer, path):
    return right_shown(report, older, replace(newer), path) if not path else "two heads and a path"


right_keyring_at = consistency._keyring_at
right_shown = equivocation._shown


# Published trees.


def level_0_only(self, level, index, hashes):
    if level == 0:
        right_compare(self, level, index, hashes)


def prefix_only(self, level, index, hashes):
    """Compare as many hashes as there must be, and look at no length."""
    path, data, _ = tiles._file(self._read, self._report, str(level), index, len(hashes))
    expected = b"".join(hashes)
    if data is not None and data[: len(expected)] != expected:
        self._report.find("tiles", "tile.hash", where=path)


def no_longer_than_there_is(self, level, index, hashes):
    """Compare as many hashes as there are."""
    path, data, _ = tiles._file(self._read, self._report, str(level), index, len(hashes))
    if data is not None and not b"".join(hashes).startswith(data[: 32 * len(hashes)]):
        self._report.find("tiles", "tile.hash", where=path)


def as_many_as_needed(data, count):
    entries = []
    at = 0
    while at < len(data) and len(entries) < count:
        end = at + 2 + int.from_bytes(data[at : at + 2], "big")
        entries.append(data[at + 2 : end])
        at = end
    return entries


def root_not_compared(levels):
    return Equal()


def no_full_tile(read_, report, kind, index, width):
    path = tiles._path(kind, index, width)
    data = read_(path)
    if data is None:
        report.find("tiles", "tile.missing", where=path)
    return path, data, None


def first_seen(note, head, **more):
    return right_reconcile(note, head, **{**more, "remembered": None})


right_compare = tiles.TreeFold._compare

B, J, E, P = "verify.bundle.", "verify.bundle._Judge.", "verify.equivocation.", "verify.published."
T = "verify.tiles.TreeFold."
C = "verify.counterseal."

MUTANTS = [
    ("keyring not followed", "verify.keyring.Keyring.take", nothing, "bundles:rotated"),
    ("rotations not judged", "verify.keyring.Keyring.take", nothing, "bundles:uncommitted"),
    ("the last entry not looked at", J + "_check_last", nothing, "bundles:revoked-hidden"),
    ("the last entry may be any", J + "_check_last", last_of_any_index, "bundles:revoked-hidden-last"),
    ("the last entry is not under the head", J + "_check_last", last_without_proof, "bundles:last-bit"),
    ("the last entry names any keyring", J + "_check_last", last_without_keyring, "bundles:revoked-hidden"),
    ("inclusion not verified", B + "verify_inclusion", nothing, "bundles:entry-time"),
    ("inclusion not verified, of altered receipts", B + "verify_inclusion", nothing, "bundles:envelope-and-entry"),
    ("size of a proof not compared", B + "verify_inclusion", any_size, "bundles:proof-smaller-size"),
    ("length of a proof not compared", B + "verify_inclusion", without_length, "bundles:proof-long"),
    ("subject not looked at", J + "_check_subject", no_subject, "bundles:subject-absent"),
    ("tree not looked at", "verify.branch.Branch.walk", lambda self, top: [top], "bundles:left-out-intent"),
    ("children may be lent", "verify.branch.Branch.check_edges", nothing, "bundles:range-foreign-child"),
    ("issuer borrowed", "verify.branch.Branch._attribute", issuer_key_only, "bundles:borrowed"),
    ("seal above not asked for", "verify.branch.Branch._attribute", everybody_attributed, "bundles:left-out-seal"),
    ("envelope digest not compared", B + "digest", lambda data: Equal(digest(data)), "bundles:seal-taken-off"),
    ("seals not verified", B + "verify_seal", nothing, "bundles:seal-invalid"),
    ("seals over the bare payload", B + "verify_seal", bare_payload, "bundles:run"),
    ("seals not asked for", J + "_seal_problem", nothing, "bundles:unsealed-run"),
    ("order of items not looked at", J + "_check_order", nothing, "bundles:item-twice"),
    ("keyring of entries not compared", J + "_check_keyring_of", nothing, "bundles:entry-keyring"),
    ("head not signed", B + "open_head", any_head, "bundles:head-other-key"),
    ("first signature taken", B + "open_head", first_of_name, "bundles:head-stranger-first"),
    ("bad signature beside a good one", B + "open_head", good_among_bad, "bundles:head-good-bad"),
    ("log key not pinned", B + "check_log", true, "bundles:trust-other-log"),
    ("nobody pinned", B + "check_log", true, "consistency:trust-none"),
    ("issuers not judged", B + "check_issuers", nothing, "bundles:trust-other-issuer"),
    ("revocations not heeded", "verify.keyring.Keyring.judge", nothing, "bundles:revoked"),
    ("retired keys believed", "verify.keyring.Keyring.judge", nothing, "bundles:retired"),
    ("memory not compared", B + "check_memory", nothing, "bundles:memory-forked"),
    ("artifact digest not compared", "verify.carried.digest", lambda data: Equal(digest(data)), "bundles:artifact-bit"),
    ("artifacts not looked at", B + "check_artifacts", digests_not_asked, "bundles:artifact-salt"),
    ("artifact size not compared", B + "check_artifacts", presence_only, "bundles:artifact-size"),
    ("artifacts not missed", B + "check_artifacts", presence_only, "bundles:artifact-absent"),
    ("any erasure excuses", B + "check_artifacts", any_erasure, "bundles:artifact-erased-another"),
    ("range not complete", "verify.range._check_places", nothing, "bundles:range-item-missing"),
    ("links of a range not compared", "verify.range._check_links", nothing, "bundles:range-previous"),
    ("any spelling of a bundle", "verify.file.parse_bundle", round_trip, "bundles:form-order"),
    ("a name twice in a bundle", "verify.file.parse_bundle", round_trip, "bundles:form-twice"),
    ("counter-seals passed over", "verify.file.verify_bundle", without_counter_seals, "counter-seals:fork"),
    ("heads that were sealed not joined", C + "_Judge._joined", true, "counter-seals:fork-newest"),
    ("a proof of the right end believed", C + "verify_consistency", nothing, "counter-seals:fork"),
    ("seals not verified", C + "open_problem", seal_not_verified, "counter-seals:altered"),
    ("any key under a notary's name", "verify.trust.Trust.judge_notary", name_only, "counter-seals:mismatch"),
    ("any name of a notary's key", "verify.trust.Trust.judge_notary", key_only, "counter-seals:other-name"),
    ("seals counted, not notaries", C + "_Heard", seals_counted, "counter-seals:twice"),
    ("any head covers", C + "_Judge._vouched", any_head_covers, "counter-seals:too-early"),
    ("quorum of the trust file passed over", C + "check_counter_seals", no_quorum, "counter-seals:quorum"),
    ("cosignatures not verified", C + "cosigners_of", by_name, "counter-seals:cosigned-altered"),
    ("cosigner's key taken for the seal's", C + "cosigners_of", by_seal_key, "counter-seals:cosigned-seal-key"),
    ("a head without its log's line", C + "open_remembered", true, "counter-seals:cosigned-unsigned"),
    ("cosignatures of a head not looked at", "verify.headfile.check_cosigned", nothing, "counter-seals:head-bare"),
    ("a document of whomever", "verify.sealed._judge_notary", nothing, "counter-seals:document-mismatch"),
    ("closed runs not asked for", "verify.file.verify_bundle", never_closed, "bundles:range-require-closed"),
    ("extra believed", "verify.tlogproof._check_inclusion", nothing, "tlog-proofs:extra-altered"),
    ("index not compared", "verify.tlogproof.parse_tlog_proof", index_of_entry, "tlog-proofs:index"),
    ("size of the head not compared", "verify.tlogproof.verify_inclusion", any_size, "tlog-proofs:head-size"),
    ("hashes too many", "verify.tlogproof.verify_inclusion", without_length, "tlog-proofs:long"),
    ("first signature of a proof", "verify.headfile.open_head", first_of_name, "tlog-proofs:stranger-first"),
    ("bad signature of a proof", "verify.headfile.open_head", good_among_bad, "tlog-proofs:good-bad"),
    ("proof not signed", "verify.headfile.open_head", any_head, "tlog-proofs:other-key"),
    ("head not signed, alone", "verify.headfile.open_head", any_head, "files:head-altered"),
    ("memory not asked of a proof", "verify.headfile.check_memory", nothing, "tlog-proofs:memory-forked"),
    ("first of two signatures", "verify.dsse.parse_dsse", lax_dsse, "dsse:two"),
    ("a stranger's signature behind", "verify.dsse.parse_dsse", lax_dsse, "dsse:stranger-behind"),
    ("the alphabet of URLs", "verify.dsse.parse_dsse", lax_dsse, "dsse:url"),
    ("bare payload", "verify.receipt.verify_seal", bare_payload, "dsse:bare"),
    ("signature not verified", "verify.receipt.verify_seal", nothing, "dsse:payload"),
    ("type not signed", "verify.receipt.verify_seal", nothing, "dsse:type-not-signed"),
    ("signature of others' types not verified", "verify.dsse.verify_seal", nothing, "dsse:foreign-bit"),
    ("consistency not verified", "verify.consistency.verify_consistency", nothing, "consistency:forked"),
    ("older head not looked at", "verify.consistency._check_older", nothing, "consistency:old-other-key"),
    ("key in force now, not then", "verify.consistency._keyring_at", every_key_at_once, "consistency:log-rotated-old"),
    ("newer head not signed", B + "open_head", any_head, "consistency:new-other-key"),
    ("forks need no path", E + "_shown", path_not_needed, "equivocations:no-path"),
    ("paths that join accuse", E + "_shown", path_shows_a_fork, "equivocations:joined"),
    ("one head twice accuses", E + "_shown", path_not_needed, "equivocations:same-head"),
    ("broken paths accuse", E + "_shown", path_not_needed, "equivocations:path-bit"),
    ("strangers accuse", E + "open_head", any_head, "equivocations:stranger"),
    ("first signature accuses", E + "open_head", first_of_name, "equivocations:stranger-first"),
    ("thieves accuse", "verify.keyring.Keyring.judge", nothing, "equivocations:revoked-old"),
    ("whoever's origin it is", E + "check_log", true, "equivocations:trust-none"),
    ("keyring from elsewhere", E + "verify_inclusion", nothing, "equivocations:keyring-proof"),
    ("tiles not compared", T + "_compare", nothing, "published:tile-bit"),
    ("tiles not missed", T + "_compare", nothing, "published:tile-missing"),
    ("levels above not compared", T + "_compare", level_0_only, "published:many-above-bit"),
    ("tile width not checked", T + "_compare", prefix_only, "published:tile-wide"),
    ("bytes behind a tile", T + "_compare", prefix_only, "published:tile-long"),
    ("tiles may be short", T + "_compare", no_longer_than_there_is, "published:tile-short"),
    ("full tiles may be short", T + "_compare", no_longer_than_there_is, "published:many-short"),
    ("bytes behind the entries", "verify.tiles._split", as_many_as_needed, "published:entries-more"),
    ("an entry behind the entries", "verify.tiles._split", as_many_as_needed, "published:entries-empty-one"),
    ("root not compared", "verify.tiles._root", root_not_compared, "published:checkpoint-root"),
    ("no full tile for a partial one", "verify.tiles._file", no_full_tile, "published:many-partial-gone"),
    ("chain not looked at", T + "_entries", nothing, "published:entry-previous"),
    ("ids not counted", P + "_check_ids", nothing, "published:entry-repeated"),
    ("checkpoint not signed", P + "open_head", any_head, "published:checkpoint-bit"),
    ("first signature of a checkpoint", P + "open_head", first_of_name, "published:checkpoint-stranger-first"),
    ("bad signature of a checkpoint", P + "open_head", good_among_bad, "published:checkpoint-good-bad"),
    ("memory not compared with a tree", P + "reconcile", first_seen, "published:memory-longer"),
    ("fork of a tree not seen", P + "reconcile", first_seen, "published:memory-forked"),
]


@pytest.mark.parametrize(
    ("target", "mutant", "killer"), [each[1:] for each in MUTANTS], ids=[each[0] for each in MUTANTS]
)
def test_a_verifier_of_files_without_one_rule_is_killed(target, mutant, killer, monkeypatch):
    assert passes(killer)
    monkeypatch.setattr(target, mutant)
    assert not passes(killer)
