"""The one table of check codes: what each means and the exit code it causes.

An exit of 0 marks a code that informs. The same table stands in docs/reference/verdicts.md and in the vectors; a test keeps
them equal. When several codes apply, the first of 1, 5, 4, 6, 3 wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

__all__ = ["CODES", "PRECEDENCE", "Code", "exit_of", "worst"]

PRECEDENCE: Final = (1, 5, 4, 6, 3, 0)
"""Exit codes, the one that wins first. 2 is for usage and never comes from evidence."""


@dataclass(frozen=True, slots=True)
class Code:
    """A stable dotted word, the exit code it causes where it was asked for, and its meaning in one sentence."""

    code: str
    exit: int
    meaning: str


_TABLE: Final = (
    # The journal and its lines.
    Code("journal.damaged", 1, "The journal holds bytes that no append and no crash leaves behind."),
    Code("journal.torn_tail", 0, "Bytes of a commit that never ended follow the last head; nothing acknowledged is among them."),
    Code("journal.segment_missing", 1, "A segment of the journal is missing, or does not start at the next index."),
    Code("line.malformed", 1, "A line of the journal is neither an entry with its envelope nor a head."),
    Code("entry.malformed", 1, "An entry does not have its fixed layout."),
    Code("entry.envelope_digest", 1, "The envelope is not the one that the entry names."),
    Code("entry.receipt_id", 1, "The receipt is not the one that the entry names."),
    Code("envelope.malformed", 1, "An envelope does not have its exact layout."),
    Code("receipt.canonical", 1, "A receipt is not the canonical text of its value."),
    Code("receipt.malformed", 1, "A receipt of a known kind has members missing, unknown or malformed."),
    Code("receipt.repeated", 1, "A receipt stands in the ledger more than once."),
    Code("receipt.foreign_ledger", 1, "A receipt was written for another ledger."),
    Code("receipt.borrowed_issuer", 1, "The nearest sealed receipt that commits an unsealed one is of another issuer, ledger or run."),
    Code("receipt.unattributed", 3, "No seal covers the receipt yet: its run is open."),
    Code("format.unknown", 3, "A schema, kind, key or payload type is not known to this version."),
    # The chain.
    Code("chain.previous", 1, "An entry does not name the entry before it."),
    Code("chain.index", 1, "An entry does not have the next index: entries are missing, repeated or moved."),
    Code("chain.keyring", 1, "An entry does not name the newest header or key entry before it."),
    Code("chain.first_entry", 1, "Entry 0 is not the header of this ledger, or a header stands elsewhere."),
    # Heads.
    Code("head.malformed", 1, "A head is not a checkpoint in a signed note, or its line does not have its exact text."),
    Code("head.missing", 1, "There is no signed head."),
    Code("head.root", 1, "A head does not have the root of the entries before it."),
    Code("head.size", 1, "A head does not have the number of the entries before it."),
    Code("head.origin", 1, "A head is of another origin."),
    Code("head.empty", 1, "A head ends a commit of no entries."),
    Code("head.link", 1, "A head line does not name the head line before it."),
    Code("head.signature", 1, "The signature of the log key on a head does not verify."),
    Code("head.unsigned", 1, "A head bears no signature of the log key in force."),
    Code("head.shorter", 1, "The ledger is shorter than one seen before: cut, or an old copy."),
    Code("head.forked", 1, "The ledger is not an extension of the head seen before: two histories were signed."),
    Code("head.first_seen", 0, "No head of this ledger was remembered, so nothing could be compared."),
    Code("head.unreconciled", 3, "No proof joins the head with the one seen before."),
    Code("head.unseen", 3, "Memory was asked for and holds no head of this ledger."),
    Code("continues.mismatch", 1, "The older ledger is not the one that the header says it continues, or does not have that head."),
    # Seals.
    Code("seal.absent", 1, "A receipt of a kind that is always sealed has no seal."),
    Code("seal.invalid", 1, "A seal does not verify."),
    Code("seal.issuer", 1, "A seal is by another key than the one its receipt names as issuer."),
    # Receipt trees.
    Code("tree.missing", 1, "A receipt commits a child that does not stand before it in its run."),
    Code("tree.repeated", 1, "A receipt is committed more than once."),
    Code("tree.uncommitted", 1, "A receipt of a closed run is not reached from its root."),
    Code("tree.cyclic", 1, "A receipt is among its own descendants."),
    Code("tree.too_deep", 1, "A receipt tree has more than 64 levels below its root."),
    Code("tree.too_many", 1, "A receipt has more than 10,000 children, or its tree more than 30,002 receipts."),
    Code("tree.after_close", 1, "A receipt other than a resolution follows the close of its run."),
    Code("tree.order", 1, "A run does not commit its opening first, or an outcome not its intent."),
    Code("run.unknown_opening", 1, "A receipt names a run whose opening does not stand before it."),
    Code("run.reopened", 1, "The opening of a run stands in the chain a second time."),
    Code("run.open", 3, "The run is not closed."),
    Code("run.listed_open", 0, "Runs of this ledger are still open."),
    # Trust.
    Code("trust.log_key_unpinned", 3, "The trust in use does not name this origin."),
    Code("trust.issuer_unpinned", 3, "The trust in use does not name this issuer."),
    Code("trust.approver_unpinned", 3, "The trust in use does not name this approver."),
    Code("trust.log_key_mismatch", 4, "The trust in use names this origin with another log key."),
    Code("trust.header_mismatch", 4, "The trust in use names this origin with another header."),
    Code("trust.issuer_mismatch", 4, "The trust in use names this issuer with another key, or this key under another name, role or origin."),
    Code("trust.notary_unpinned", 3, "The trust in use does not name this notary."),
    Code("trust.notary_mismatch", 4, "The trust in use names this notary with another key, or this key under another name or role."),
    Code("trust.timestamp_unpinned", 3, "The trust in use does not name the certificate that a timestamp leads to."),
    Code("trust.quorum", 4, "Fewer notaries vouch for the subject than were asked for."),
    # Keys over time.
    Code("key.revoked", 4, "A receipt stands at or after the index from which its key is no longer believed."),
    Code("key.retired", 4, "A receipt is sealed by a key that was replaced before it."),
    Code("key.chain", 1, "A key receipt does not follow from the keys in force and the next keys committed."),
    # Subjects.
    Code("subject.absent", 5, "What was asked for is not there."),
    Code("subject.unknown", 5, "The file is nothing that this version recognises."),
    Code("coverage.empty", 5, "There is no receipt to verify."),
    Code("coverage.time_ended", 3, "The time given ended before the last entry; the verification can go on from there."),
    Code("coverage.nothing_new", 3, "Nothing follows what an earlier run judged, so nothing was judged now."),
    Code("coverage.earlier", 0, "Entries were judged by an earlier run on this machine, and not read again."),
    Code("proof.malformed", 1, "A merkle proof cannot be one for its index and size."),
    Code("proof.inclusion", 1, "An entry is not under the head."),
    Code("proof.consistency", 1, "One head is not shown to begin with the other."),
    Code("bundle.malformed", 1, "A bundle or consistency file does not have its exact layout."),
    Code("tile.missing", 1, "A file that the checkpoint of a published tree asks for is not there."),
    Code("tile.malformed", 1, "A file of a published tree is no plain file, or does not have the length and layout of its place."),
    Code("tile.hash", 1, "A hash tile of a published tree is not that of the entries below it."),
    Code("time.step_back", 0, "The recorder's clock went back between two entries; order is by index alone."),
    # Rules, re-proved.
    Code("act.digest", 6, "An intent or a decision states an act digest that is not that of its act, its run's actor and its effect key."),
    Code("act.arguments", 6, "Arguments that stand inline in an intent are not those of its stored arguments."),
    Code("budget.overspent", 6, "An act was admitted that passes a limit, or acts cost more than the limit and its grace."),
    Code("budget.unknown_price", 6, "An act was admitted under a money limit without a price, or cost an amount in another currency."),
    Code("budget.act_after_overrun", 6, "An act was admitted although an earlier one had cost more than was set aside for it."),
    Code("budget.over_time", 6, "A run with a time limit ended after the limit and its grace."),
    Code("budget.attempts", 6, "An edge was taken more often than its limit allows."),
    Code("budget.structure", 6, "More receipts, child runs, levels or acts at once than a limit allows."),
    Code("budget.widened", 6, "A child run's limit is wider than that of a run above it."),
    Code("budget.contradicted", 6, "A refusal or a close gives amounts that are not those of the receipts before it, or an act used more than it settles."),
    Code("policy.breach", 6, "An act was admitted that the policy in force forbids."),
    Code("policy.other", 6, "An act was decided under another policy than the one its run was opened under."),
    Code("policy.widened", 6, "A run goes on, or a child run starts, under a policy that allows more than the one before."),
    Code("policy.unrecorded", 6, "An act that a policy only observes does not say what the policy would have decided."),
    Code("approval.missing", 6, "An act was admitted without the approvals that it needs."),
    Code("approval.mismatch", 6, "An act uses an approval for another act, state, policy, role or run."),
    Code("approval.reused", 6, "An act uses an approval whose uses are used up."),
    Code("approval.expired", 6, "An act uses an approval, or an approval answers a request, after its time."),
    Code("approval.replaced", 6, "An act uses an approval that the same approver had taken back."),
    Code("approval.denied", 6, "An act uses an approval although a request for it is denied."),
    Code("approval.unknown", 6, "An act uses an approval that does not stand before it."),
    Code("approval.self", 6, "An approval is by the agent, the issuer of the run or the log."),
    Code("effect.repeated", 6, "An effect was attempted again although it was committed or in progress."),
    Code("effect.retried_ambiguous", 6, "An effect was attempted again although nobody knew whether it had happened."),
    Code("effect.attempt", 6, "An attempt does not have the number that follows from those before it."),
    Code("effect.contradicted", 6, "Receipts say of one attempt that it happened and that it did not."),
    Code("effect.resolved_settled", 6, "A resolution settles an effect that was not ambiguous."),
    Code("effect.unproven_failure", 6, "An effect is called failed without proof that nothing was done."),
    Code("grant.missing", 6, "An act, a run or a grant names a grant that does not stand before it, or none where it must."),
    Code("grant.other", 6, "An act or a run is under a grant for somebody else, or one that is not narrowed from that of its run."),
    Code("grant.not_covered", 6, "An act was admitted that its grant, or one above it, does not cover."),
    Code("grant.revoked", 6, "An act, a run or a grant relies on a grant that was revoked before it."),
    Code("grant.expired", 6, "An act, a run or a grant relies on a grant after its end."),
    Code("grant.widened", 6, "A grant allows more than the one that it is narrowed from."),
    Code("grant.unmandated", 6, "A grant hands over to another actor and names no mandate."),
    Code("grant.duties", 6, "An act was admitted without the approvals, by different approvers in their roles, that its grant asks for."),
    Code("grant.overspent", 6, "Acts under a grant cost more than it allows."),
    Code("grant.period_overspent", 6, "Acts of an account cost more within a period than a grant allows."),
    Code("grant.contradicted", 6, "A refusal gives amounts of a grant or an account that are not those of the receipts before it, or an act used more than it settles."),
    Code("runbook.other", 6, "A run follows another document than the one that its policy envelope was derived from."),
    Code("runbook.not_refused", 6, "Something ran under a runbook that had to be refused before it started."),
    Code("runbook.undeclared_tool", 6, "An act used a tool that its runbook does not declare."),
    Code("runbook.out_of_scope_tool", 6, "An act used a tool that its step does not declare."),
    Code("runbook.out_of_order_step", 6, "A step was entered that the runbook does not contain, or not there."),
    Code("runbook.budget_exhausted", 6, "A step was retried more often than its budget allows."),
    Code("runbook.terminal_not_reached", 6, "A run is called completed and did not end at a terminal of its runbook."),
    Code("runbook.not_asserted", 6, "A step is called completed, and nothing says that what it asserts is so."),
    Code("runbook.unrecorded", 6, "An act deviates from a runbook that is only advice, and does not say so."),
    Code("runbook.contradicted", 6, "A receipt says that a retry budget ran out, and it had not."),
    Code("evaluation.contradicted", 6, "An evaluation gives another verdict than its answers, or other answers than its observation."),
    Code("hold.erased", 6, "What a hold kept from being erased was erased."),
    Code("budget.basis_unknown", 3, "What an act costs under a money limit is not known."),
    Code("budget.time_unknown", 3, "A run with a time limit does not say how long it took."),
    Code("policy.absent", 3, "The policy document is not there, so nothing can be decided under it."),
    Code("policy.unreadable", 3, "The policy document cannot be read."),
    Code("policy.arguments_absent", 3, "What the policy looks at in the arguments is not there."),
    Code("approval.unpinned", 3, "The trust in use does not name the approver with this key and role."),
    Code("grant.terms_absent", 3, "The terms of a grant are not there."),
    Code("grant.terms_unreadable", 3, "The terms of a grant cannot be read."),
    Code("runbook.absent", 3, "The policy envelope of a run is not there, so nothing can be decided under it."),
    Code("runbook.unreadable", 3, "The policy envelope of a run cannot be read."),
    Code("evaluation.criteria_absent", 3, "The criteria of an evaluation are not there."),
    Code("hold.receipt_absent", 3, "Whether an erasure touches a run that is held cannot be told: a receipt that it names is not there."),
    # Counter-seals and timestamps.
    Code("counterseal.malformed", 1, "A counter-seal or a cosigned head does not have its exact layout."),
    Code("counterseal.signature", 1, "The seal of a counter-seal does not verify."),
    Code("counterseal.subject", 1, "A counter-seal is about another receipt, place or ledger than the evidence that it stands beside."),
    Code("counterseal.record", 1, "What a notary says of its own record of a counter-seal does not hold."),
    Code("cosignature.invalid", 1, "The cosignature of a pinned notary does not verify."),
    Code("timestamp.invalid", 1, "A timestamp is not over the head beside it, or its signature, chain or usage does not hold."),
    # Documents of other systems.
    Code("foreign.malformed", 1, "A foreign document is not readable, or has members missing, unknown or malformed under its schema."),
    Code("foreign.duplicate_name", 1, "A foreign document names a member twice: two readers read two documents."),
    Code("foreign.too_deep", 1, "A foreign document nests deeper than is read, so nothing of it was checked."),
    Code("foreign.repeated", 1, "A foreign record stands more than once."),
    Code("foreign.unreadable", 1, "A part of a foreign store could not be read."),
    Code("foreign.unsigned", 3, "A foreign document bears no signature: nothing says whose it is."),
    Code("foreign.unchained", 3, "A foreign document stands without the chain that would show a change."),
    Code("foreign.end_unknown", 3, "Nothing says where the records of a foreign document end: a cut would leave no trace."),
    Code("foreign.native_fails", 1, "A foreign document was imported as one that does not hold by its own rules."),
    Code("foreign.altered", 1, "What a document of another system says of itself by a digest or a sum is not so."),
    Code("foreign.contradicted", 1, "A document of another system contradicts itself or its own rules."),
    Code("foreign.signature", 1, "A signature in a document of another system does not verify."),
    Code("foreign.tree", 1, "The receipts of another system do not form the trees that they state."),
    Code("foreign.ambiguous", 1, "Two documents of another system differ and have one id."),
    Code("foreign.incomplete", 1, "A stream or a set of another system ends before its end."),
    Code("foreign.key_unpinned", 3, "The trust in use does not name the key of a document of another system."),
    Code("foreign.later_rule", 3, "A rule of a later version of that system refuses what an earlier one takes."),
    Code("foreign.unbound", 3, "What a document of another system answers is not at hand, so nothing binds it."),
    Code("foreign.rounded", 0, "An amount is finer than a millionth, and is rounded up where it is added."),
    # ctrlrun: six names of its own, then what its check does not ask.
    Code("ctrlrun.content_altered", 1, "By ctrlrun's rule: a receipt does not hash to its stored hash."),
    Code("ctrlrun.hash_missing", 1, "By ctrlrun's rule: a receipt of the chain has no stored hash."),
    Code("ctrlrun.link_broken", 1, "By ctrlrun's rule: a receipt does not name the hash of the one before it."),
    Code("ctrlrun.missing", 1, "By ctrlrun's rule: no receipt stands at a place of the chain."),
    Code("ctrlrun.head_mismatch", 1, "By ctrlrun's rule: the head is not the last receipt."),
    Code("ctrlrun.unchained", 3, "By ctrlrun's rule: receipts without a place in the chain, of which nothing is verified."),
    Code("ctrlrun.anchor_broken", 1, "By ctrlrun's rule: an anchored place is gone, or has another hash."),
    Code("ctrlrun.anchor_unasked", 3, "Whether the provider of anchors still vouches for them was not asked."),
    Code("ctrlrun.action_hash", 1, "An action hash is not that of the action in its receipt."),
    Code("ctrlrun.place", 1, "A receipt says that it stands at another place than its row."),
    Code("ctrlrun.column", 1, "A column of the store does not say what the receipt beside it says."),
    Code("ctrlrun.columns_of_others", 3, "No row of the store has the columns of its receipt: they belong to other receipts."),
    Code("ctrlrun.shorter", 1, "A receipt that a ledger received as it happened is not in the store."),
    Code("ctrlrun.no_receipt", 1, "An event or an effect says that an action was committed, and no receipt does."),
    Code("ctrlrun.no_event", 3, "A receipt says that an action was committed, and no event does."),
    Code("ctrlrun.events_of_others", 3, "The events of the store are about other actions than its receipts."),
    Code("ctrlrun.events_missing", 3, "Events that the store has numbered are not there."),
    Code("ctrlrun.pruned", 3, "A checkpoint stands for receipts that were pruned."),
    Code("ctrlrun.prune_unrecorded", 1, "The chain starts at a checkpoint that no receipt of a prune accounts for."),
    # What can be asked for besides.
    Code("artifact.absent", 5, "An artifact that was asked for is not there, and no erasure says why."),
    Code("artifact.altered", 1, "The bytes of an artifact do not have the digest or the size that they are named by."),
    Code("artifact.erased", 0, "An artifact was erased; the erasure is recorded."),
    Code("artifact.remains", 3, "The bytes of an artifact are there although its erasure is recorded."),
    Code("artifact.unreadable", 3, "The bytes of an artifact are there and cannot be read."),
    Code("check.not_asked", 0, "This check was not asked for and did not run."),
    Code("check.unreachable", 3, "This check could not run because an earlier one failed."),
    Code("check.unsupported", 3, "This version cannot check what was asked for."),
)  # fmt: skip

CODES: Final = {row.code: row for row in _TABLE}
"""Code -> its row, in the order of the documentation."""


def exit_of(code: str) -> int:
    """Return the exit code that a finding under `code` causes where it was asked for.

    Raises:
        KeyError: not a code of the table.
    """
    return CODES[code].exit


def worst(exits: Iterable[int]) -> int:
    """Return the exit code that wins; 0 for none."""
    found = set(exits)
    return next(code for code in PRECEDENCE if code in found or code == 0)
