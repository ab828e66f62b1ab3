"""`ledger report`: one file that shows what the evidence says, whatever the evidence holds, and fetches nothing."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

from cli.report.page import SHOWN
from ledger import Blocked
from ledger.envelope import seal
from ledger.keys import PrivateKey
from ledger.members import Actor, Issuer
from ledger.receipt import Approval, Decision, Grant, Resolution, act_digest, parse_receipt, print_receipt
from ledger.storage.ledger import PRODUCER
from tests.reference.ledgers import ACT, common
from tests.reference.people import Person

VOID = {"meta", "link", "br", "hr", "img", "input", "wbr"}
FETCHED = {"src", "href", "action", "formaction", "poster", "data", "srcset", "background", "ping", "xlink:href"}
BIDI = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(2)> \u202eexe.png\u200f \" ' & {{ 7*7 }}"


class Seen(HTMLParser):
    """What a browser would make of a page: elements with their attributes, and the text of each kind of element."""

    def __init__(self, data):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.text, self.script, self.style = [], [], [], [], []
        self.feed(data.decode("utf-8"))
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        inside = self.open[-1] if self.open else ""
        {"script": self.script, "style": self.style}.get(inside, self.text).append(data)

    @property
    def said(self):
        return re.sub(r"\s+", " ", " ".join(self.text))


@pytest.fixture
def owner(tmp_path):
    return Person(tmp_path / "owner")


@pytest.fixture
def folder(tmp_path, owner):
    path = tmp_path / "ledger"
    assert owner("init", path).exit == 0
    return path


def page_of(owner, folder, *arguments, exit_=0):
    file = folder.parent / "report.html"
    done = owner("-L", folder, "report", *arguments, "-o", file, "--json")
    assert done.exit == exit_, done.err
    assert done.json["exit"] == exit_
    data = file.read_bytes()
    assert done.json["size_bytes"] == len(data)
    return data, Seen(data)


def refers_outside(seen):
    """Return everything in a page that a browser might fetch or follow."""
    found = []
    for tag, attributes in seen.elements:
        for name, value in attributes.items():
            if name in FETCHED and not (value or "").startswith("#"):
                found.append((tag, name, value))
            if name == "style" and "url" in (value or ""):
                found.append((tag, name, value))
        if tag in {"link", "img", "iframe", "object", "embed", "video", "audio", "base", "form"}:
            found.append((tag, attributes))
    found += re.findall(r"url\(|@import|https?:|//[a-z]", " ".join(seen.style))
    return found + re.findall(r"fetch|XMLHttp|import\(|https?:|WebSocket|sendBeacon", " ".join(seen.script))


def hostile_run(owner, folder):
    with owner.open(folder) as ledger:
        actor = Actor(agent=HOSTILE, user="\u05e9\u05dc\u05d5\u05dd", model="m")
        with (
            ledger.run(HOSTILE, actor=actor, correlation={HOSTILE: "x", "a": HOSTILE}) as run,
            run.step(HOSTILE) as step,
        ):
            arguments = {"long": "A" * 700_000, HOSTILE: HOSTILE}
            with step.call(HOSTILE, arguments=arguments, inline=("long", HOSTILE), resource=HOSTILE[:256]) as call:
                call.artifact("</pre>\x1b[31m" + HOSTILE + "B" * 1_100_000, name=HOSTILE[:200], media_type="text/html")
            with pytest.raises(RuntimeError), step.call("fails") as call:
                raise RuntimeError(HOSTILE)
        return run.id


def test_hostile_content_stays_text_and_is_cut_with_a_note(owner, folder):
    hostile_run(owner, folder)
    data, seen = page_of(owner, folder, "--artifacts")
    assert refers_outside(seen) == []
    assert [tag for tag, _ in seen.elements].count("script") == 1
    assert "alert" not in " ".join(seen.script)
    assert not [name for _, attributes in seen.elements for name in attributes if name.startswith("on")]
    assert "<script>alert(1)</script>" in seen.said
    assert "{{ 7*7 }}" in seen.said
    assert BIDI.findall(data.decode("utf-8")) == []
    assert b"\x1b" not in data
    assert "\\u202e" in seen.said
    assert "\u05e9\u05dc\u05d5\u05dd" in seen.said
    assert re.search(r"69\d,\d{3} more characters are not shown", seen.said)
    assert max(len(run) for run in re.findall("A+", seen.said)) <= 2 * SHOWN
    assert len(data) < 80_000


def test_the_page_allows_its_own_script_and_nothing_else(owner, folder):
    owner.record(folder)
    _, seen = page_of(owner, folder)
    (policy,) = [a["content"] for tag, a in seen.elements if tag == "meta" and "http-equiv" in a]
    (script,) = seen.script
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert refers_outside(seen) == []
    ids = [a["id"] for _, a in seen.elements if "id" in a]
    assert len(ids) == len(set(ids))
    targets = [a["href"][1:] for tag, a in seen.elements if tag == "a"]
    assert set(targets) <= set(ids)


def busy_run(ledger):
    """Return the id of a run in which most of what can happen happens."""
    limits = {"usd": "0.05", "tool_calls": 9}
    with ledger.run("month end", actor="bot", correlation={"ticket": "OPS-1"}, budget=limits) as run:
        with run.call("look", access="read", reserve={"usd": "0.01"}) as call:
            call.use("usd_micro", 4_200)
        pay = run.call("pay", access="write", effect_key="pay:1", reserve={"usd": "0.02"})
        with pytest.raises(TimeoutError), pay:
            raise TimeoutError
        with pytest.raises(Blocked), run.call("print", reserve={"usd": "9"}):
            pass
        with run.call("deploy", reserve={"usd": "0"}) as call, call.run("inner", actor="other") as inner:
            inner.perform("copy", lambda _: None, reserve={"usd": "0"})
    return run.id


HAPPENED = ("month end", "completed", "bot", "OPS-1", "look", "pay", "print", "inner", "copy", "budget.limit")


def test_what_happened_stands_in_the_page(owner, folder):
    with owner.open(folder) as ledger:
        run = busy_run(ledger)
    _, seen = page_of(owner, folder, run[7:19])
    for word in HAPPENED:
        assert word in seen.said, word
    assert "Established" in seen.said
    lines = {}
    for tag, attributes in seen.elements:
        if tag == "details" and "node" in attributes.get("class", "").split():
            lines.setdefault(attributes["class"], 0)
            lines[attributes["class"]] += 1
    assert lines == {"node good": 5, "node alarm out": 1, "node refused out": 1}
    assert seen.said.count("act.exception") >= 2
    shown = owner("-L", folder, "budget", run, "--json").json["meters"]
    usd = next(row for row in shown if row["meter"] == "usd_micro")
    assert (usd["spent"], usd["reserved"]) == (4_200, 20_000)
    assert "0.0042 USD of 0.05 USD, 0.02 USD set aside" in seen.said
    assert "3 of 9, 1 set aside" in seen.said
    for check in owner("-L", folder, "verify", run, "--json").json["checks"]:
        assert check["name"] in seen.said
    for word in (
        "That it is true.",
        "That it is all.",
        "A picture of the evidence".lower()[2:],
        "sha256sum",
        "prove",
        "no notary",
    ):
        assert word in seen.said, word
    assert len([1 for tag, _ in seen.elements if tag == "table"]) == 1


def test_a_timeline_places_each_act_by_when_it_began_and_how_long_it_took(owner, folder):
    with owner.open(folder) as ledger, ledger.run("work") as run:
        for name in ("first", "second"):
            with run.call(name):
                time.sleep(0.02)  # a bar needs a length
    _, seen = page_of(owner, folder)
    spans = [a["style"] for tag, a in seen.elements if tag == "span" and "style" in a]
    at = [tuple(map(float, re.fullmatch(r"left:([\d.]+)%;width:([\d.]+)%", style).groups())) for style in spans]
    whole, first, second = at
    assert whole[0] == 0
    assert 0 <= first[0] < first[0] + first[1] <= second[0] + 5
    assert second[0] + second[1] <= 100.001
    assert first[1] > 5


def approve(ledger, run, request, *, by, answer="granted"):
    key = PrivateKey.from_seed(by.encode().ljust(32, b"."))
    waited = parse_receipt(ledger.get(request).envelope.payload)
    made = Approval(
        **{**common(ledger), "issuer": Issuer(name=by, key=key.key)}, run=run, request=request, answer=answer, role="ops",
        act_digest=waited.act_digest, expires_at="2999-01-01T00:00:00.000Z", uses=1,
    )  # fmt: skip
    return ledger.append(seal(print_receipt(made), key)).receipt


def test_approvals_say_who_answered_and_who_approved_their_own_act(owner, folder):
    with owner.open(folder) as ledger, ledger.run("work", actor="bot") as run:
        waiting = {}
        for name in ("good", "own", "unanswered"):
            act = ACT.model_copy(update={"name": name})
            digest = act_digest(act, ledger=ledger.origin, run=run.id, actor=run.opening.actor, effect_key=None)
            made = Decision(
                **common(ledger), run=run.id, act=act, act_digest=digest, status="waiting", reason="approval.required",
                roles=("ops",), needed=1, expires_at="2999-01-01T00:00:00.000Z",
            )  # fmt: skip
            waiting[name] = ledger.append(ledger.envelope(made)).receipt
        approve(ledger, run.id, waiting["good"], by="ann")
        approve(ledger, run.id, waiting["own"], by="bot", answer="denied")
        id_ = run.id
        page = owner("-L", folder, "report", id_)
    seen = Seen(page.out.encode())
    rows = re.search(r"Used by (.*?) Counter-seals", seen.said)[1]
    assert re.search(r"good \w+ granted ann ops", rows)
    assert re.search(r"own \w+ denied bot who also acted ops", rows)
    assert re.search(r"unanswered \w+ waiting ops", rows)
    stands_out = re.search(r"What stands out (.*?) Timeline", seen.said)[1]
    assert "own: denied by who also acted bot" in stands_out


def test_an_ambiguous_act_says_how_it_was_resolved(owner, folder):
    with owner.open(folder) as ledger:
        with ledger.run("work") as run, pytest.raises(TimeoutError), run.call("pay", effect_key="pay:1") as call:
            raise TimeoutError
        resolution = Resolution(
            **common(ledger), run=run.id, intent=call.intent, happened="happened", resolved_by="ann"
        )
        ledger.append(ledger.seal(resolution))
    _, seen = page_of(owner, folder)
    assert "it happened, found by ann" in seen.said


def test_a_resolution_that_was_altered_is_not_shown_under_a_good_verdict(owner, folder):
    with owner.open(folder) as ledger:
        with ledger.run("work") as run, pytest.raises(TimeoutError), run.call("pay", effect_key="pay:1") as call:
            raise TimeoutError
        resolution = Resolution(
            **common(ledger), run=run.id, intent=call.intent, happened="happened", resolved_by="ann"
        )
        ledger.append(ledger.seal(resolution))
    _, seen = page_of(owner, folder)
    assert "linked receipts ok 1" in seen.said
    (journal,) = (folder / "journal").iterdir()
    journal.write_bytes(journal.read_bytes().replace(b'"resolved_by":"ann"', b'"resolved_by":"eve"'))
    # The run's own tree is as it was, so only the receipt beside it tells.
    assert owner("-L", folder, "verify", run.id).exit == 0
    _, seen = page_of(owner, folder, exit_=1)
    assert "Does not hold" in seen.said


def test_an_open_run_is_shown_as_it_stands_and_the_page_says_what_is_not_established(owner, folder):
    ledger = owner.open(folder)
    run = ledger.run("still going")
    with run.call("done"):
        pass
    with run.call("now"):
        _, seen = page_of(owner, folder, run.id, exit_=3)
    assert "Not established" in seen.said
    assert "run.open" in seen.said
    for word in ("done committed", "now under way", "still going open"):
        assert word in seen.said, word


def test_a_ledger_that_does_not_hold_is_never_shown_as_one_that_does(owner, folder):
    run = owner.record(folder)
    (journal,) = (folder / "journal").iterdir()
    data = journal.read_bytes()
    at = data.index(b'"host"') if b'"host"' in data else data.index(b'"nonce":"', data.index(b'"kind":"intent"')) + 9
    journal.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    for arguments in ((run,), ("--since", "1d")):
        file = folder.parent / "report.html"
        done = owner("-L", folder, "report", *arguments, "-o", file)
        assert done.exit == 1, done.err
        said = Seen(file.read_bytes()).said
        assert "Does not hold" in said
        assert "Established" not in said


def test_the_exit_is_that_of_the_verdict_for_somebody_who_trusts_nobody(owner, folder, tmp_path):
    owner.record(folder)
    _, seen = page_of(Person(tmp_path / "stranger"), folder, exit_=3)
    assert "trust.log_key_unpinned" in seen.said
    assert "nobody is pinned" in seen.said


def test_since_shows_the_runs_opened_since_then_newest_first_with_child_runs_inside(owner, folder):
    for name in ("one", "two"):
        owner.record(folder, name)
    with owner.open(folder) as ledger, ledger.run("three") as run, run.call("act") as call, call.run("below"):
        pass
    _, seen = page_of(owner, folder, "--since", "1h")
    names = re.findall(r"\b(one|two|three|below)\b", seen.said)[:3]
    assert names == ["three", "two", "one"]
    assert seen.said.count("below") == 1
    _, seen = page_of(owner, folder, "--since", "2999-01-01")
    assert "No run" in seen.said


def test_a_page_has_room_for_so_much_and_says_what_it_leaves_out(owner, folder, monkeypatch):
    monkeypatch.setattr("cli.report.command._ROOM", 6)
    with owner.open(folder) as ledger:
        for name in ("old", "new"):
            with ledger.run(name) as run:
                for number in range(9):
                    with run.call(f"act {number}"):
                        pass
    _, seen = page_of(owner, folder)
    assert "8 more receipts of this run are not shown" in seen.said
    assert "act 4 " in seen.said
    assert "act 5 " not in seen.said
    _, seen = page_of(owner, folder, "--since", "1h")
    assert "1 more runs are not shown" in seen.said


def test_receipts_that_cannot_be_read_and_linked_ones_do_not_stop_a_report(owner, folder):
    with owner.open(folder) as ledger, ledger.run("work") as run:
        ledger.append(ledger.seal(Grant(**common(ledger), action="given", grantee="bot")))
        with run.call("act"):
            pass
    assert PRODUCER is not None
    _, seen = page_of(owner, folder, "--since", "1h")
    assert "work" in seen.said


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("latest", "--since", "1d"), 2, "do not go together"),
        (("--since", "yesterday"), 2, "expected a day or moment"),
        (("--since", "2026-02-30"), 2, "expected a day or moment"),
        (("0123456789ab",), 5, "no such receipt"),
        (("--format", "pdf"), 2, "pdf"),
    ],
)
def test_what_cannot_be_reported_is_said(owner, folder, arguments, code, said):
    owner.record(folder)
    done = owner("-L", folder, "report", *arguments)
    assert (done.exit, done.out) == (code, "")
    assert said in done.err


# Colours.

CSS = (Path(__file__).resolve().parents[2] / "cli/report/page.css").read_text(encoding="utf-8")
TONES = ("good", "bad", "alarm", "refused", "waiting", "plain")


def palettes():
    """Return the colours of the light, dark and printed page, by name."""
    found = [
        dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block))
        for block in re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    ]
    assert len(found) == 3
    return dict(zip(("light", "dark", "print"), found, strict=True))


def luminance(colour):
    """Return the relative luminance of `#rrggbb`. Source: WCAG 2.2, "relative luminance"."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_computed_as_the_standard_says():
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_text_has_the_contrast_of_level_aa_on_every_ground_that_it_stands_on(scheme):
    colours = palettes()[scheme]
    grounds = ["ground", "raised", *(f"{tone}-ground" for tone in TONES)]
    pairs = [(text, ground) for text in ("text", "soft") for ground in grounds]
    pairs += [(tone, f"{tone}-ground") for tone in TONES] + [("link", "ground"), ("ground", "link"), ("bad", "ground")]
    pairs += [("link", f"{tone}-ground") for tone in TONES] + [("link", "raised")]
    assert {
        pair: contrast(*(colours[name] for name in pair))
        for pair in pairs
        if contrast(*(colours[name] for name in pair)) < 4.5
    } == {}
    # Bars and marks: 3:1 against what they lie on.
    assert all(
        contrast(colours[tone], colours[ground]) >= 3
        for tone in TONES
        for ground in ("ground", "raised", "plain-ground")
    )
