"""Vectors of signed notes, their keys, checkpoints and signed heads."""

from __future__ import annotations

import base64

from vectors.makers import kit
from vectors.makers.case import File, bytes_input
from vectors.makers.merkle import ENTRIES

NAME = "log.example/one"
TEXT = "A text of two lines.\nIts second line.\n"
BAD, UNSIGNED, WRONG = "note.malformed", "note.unsigned", "note.bad_signature"


def notes() -> File:
    out = File(
        "notes",
        ("docs/spec/heads.md",),
        "first signature taken, key ids not compared, lax lines and base64, bad lines of known keys ignored",
    )
    known = kit.vkey(NAME, kit.LOG)
    ours = kit.note_line(TEXT, NAME, kit.LOG)
    other = kit.note_line(TEXT, "other.example", kit.OTHER_LOG)
    key_id = kit.note_key_id(NAME, kit.LOG.public)
    signature = kit.LOG.sign(TEXT.encode())
    verified = [f"{NAME}+{key_id.hex()}"]

    def case(
        id_: str,
        note: str | bytes,
        comment: str,
        code: str | None = None,
        flags: str = "",
        *,
        keys: tuple[str, ...] = (known,),
        value=None,
    ) -> None:
        data = note.encode() if isinstance(note, str) else note
        if code is None and value is None:
            value = verified
        out.case("note", id_, comment, {**bytes_input(data), "keys": list(keys)}, code=code, flags=flags, value=value)

    def signed(text: str) -> str:
        return text + "\n" + kit.note_line(text, NAME, kit.LOG)

    case("note", TEXT + "\n" + ours, "A note with one signature.")
    case(
        "note-empty-line",
        signed("A text\n\nwith an empty line.\n"),
        "The last empty line ends the text.",
        flags="first-match",
    )
    case(
        "note-dash-in-text",
        signed("A text\n\n\u2014 with.a.line AAAAAAA=\n"),
        "A text that looks like a signature.",
        flags="first-match",
    )
    case("note-unicode", signed("\u00c4rger \U0001f600\n"), "Any Unicode.")
    case("note-separator", signed("one\u2028line\u0085\n"), "U+2028 and U+0085 end no line.", flags="line-separator")
    case("note-no-keys", TEXT + "\n" + ours, "Nobody is known.", UNSIGNED, "unknown-key", keys=())
    case("note-stranger", TEXT + "\n" + other, "Only a line of an unknown key.", UNSIGNED, "unknown-key")
    case(
        "note-stranger-first",
        TEXT + "\n" + other + ours,
        "A line of an unknown key before ours.",
        flags="first-signature",
    )
    case("note-stranger-behind", TEXT + "\n" + ours + other, "And behind.", flags="first-signature")
    forged = kit.note_line(TEXT, NAME, kit.OTHER_LOG)
    case(
        "note-same-name-first",
        TEXT + "\n" + forged + ours,
        "Our name with another key's id before ours: a line of an unknown key.",
        flags="first-signature key-id",
    )
    case("note-same-name-only", TEXT + "\n" + forged, "Our name with another key's id, alone.", UNSIGNED, "key-id")
    case(
        "note-forged-id",
        TEXT + "\n" + kit.signature_line(NAME, key_id, kit.OTHER_LOG.sign(TEXT.encode())),
        "Our name and key id, another key's signature.",
        WRONG,
        "key-id",
    )
    case(
        "note-name",
        TEXT + "\n" + kit.signature_line("log.example/two", key_id, signature),
        "Our key id under another name.",
        UNSIGNED,
        "key-name",
    )
    case(
        "note-bad",
        TEXT + "\n" + kit.signature_line(NAME, key_id, kit.flip(signature, 3)),
        "One bit of our signature.",
        WRONG,
        "bit-flip",
    )
    case("note-text-bit", TEXT.replace("second", "recond") + "\n" + ours, "One bit of the text.", WRONG, "bit-flip")
    bad = kit.signature_line(NAME, key_id, kit.flip(signature, 3))
    case(
        "note-good-bad",
        TEXT + "\n" + ours + bad,
        "A bad line of a known key refuses the note, also behind a good one.",
        WRONG,
        "first-signature",
    )
    case("note-bad-good", TEXT + "\n" + bad + ours, "Also before a good one.", WRONG, "first-signature")
    case("note-twice", TEXT + "\n" + ours + ours, "Our line twice counts once.", flags="repeated-signature")
    two = kit.vkey("other.example", kit.OTHER_LOG)
    both = [*verified, f"other.example+{kit.note_key_id('other.example', kit.OTHER_LOG.public).hex()}"]
    case("note-two", TEXT + "\n" + ours + other, "Two known keys.", keys=(known, two), value=both)
    case("note-two-one", TEXT + "\n" + ours, "One of two known keys is enough for the note.", keys=(known, two))
    case("note-two-bad", TEXT + "\n" + ours + kit.signature_line("other.example", kit.note_key_id("other.example", kit.OTHER_LOG.public), signature),
         "Of two known keys one's line is bad.", WRONG, "first-signature", keys=(known, two))  # fmt: skip
    case(
        "note-ambiguous",
        TEXT + "\n" + ours,
        "One key given twice.",
        "note.ambiguous_key",
        "ambiguous-key",
        keys=(known, known),
    )
    witness = kit.cosignature_line(TEXT, "witness.example", kit.WITNESS, 1796030100)
    witness_key = kit.vkey("witness.example", kit.WITNESS, 4)
    case("note-cosigned", TEXT + "\n" + ours + witness, "A cosignature beside our line.", flags="first-signature")
    case("note-cosignature", TEXT + "\n" + witness, "A cosignature by its key.", keys=(witness_key,),
         value=[f"witness.example+{kit.note_key_id('witness.example', kit.WITNESS.public, 4).hex()}"])  # fmt: skip
    bare = kit.signature_line(
        "witness.example",
        kit.note_key_id("witness.example", kit.WITNESS.public, 4),
        bytes(8) + kit.WITNESS.sign(TEXT.encode()),
    )
    case(
        "note-cosignature-bare",
        TEXT + "\n" + bare,
        "A cosignature over the bare text.",
        WRONG,
        "key-type",
        keys=(witness_key,),
    )
    later = kit.cosignature_line(TEXT, "witness.example", kit.WITNESS, 1796030100).split(" ")[2]
    moved = kit.b64(kit.flip(base64.b64decode(later), 11))
    case(
        "note-cosignature-time",
        TEXT + "\n\u2014 witness.example " + moved + "\n",
        "One bit of its time.",
        WRONG,
        "bit-flip",
        keys=(witness_key,),
    )
    _note_forms(case, signed, ours, key_id, signature)
    _note_keys(out)
    return out


def _note_forms(case, signed, ours: str, key_id: bytes, signature: bytes) -> None:
    flag = "lax-lines"
    case("form-hyphen", TEXT + "\n" + ours.replace("\u2014", "-"), "A hyphen for the dash.", BAD, flag)
    case("form-en-dash", TEXT + "\n" + ours.replace("\u2014", "\u2013"), "An en dash for the em dash.", BAD, flag)
    case("form-no-dash", TEXT + "\n" + ours[2:], "No dash.", BAD, flag)
    case("form-two-spaces", TEXT + "\n" + ours.replace("\u2014 ", "\u2014  "), "Two spaces.", "base64.malformed", flag)
    case("form-space-behind", TEXT + "\n" + ours[:-1] + " \n", "A space behind.", "base64.malformed", flag)
    case("form-carriage-return", (TEXT + "\n" + ours).replace("\n", "\r\n"), "CR LF.", BAD, "line-endings")
    case("form-no-line-feed", TEXT + "\n" + ours[:-1], "The last LF missing.", BAD, "truncation")
    case("form-no-signature", TEXT + "\n", "No signature line.", BAD, "unsigned")
    case("form-no-empty-line", TEXT + ours, "No empty line.", BAD, flag)
    case("form-empty-line-behind", TEXT + "\n" + ours + "\n", "An empty line behind.", BAD, flag)
    case(
        "form-empty-line-between",
        TEXT + "\n" + ours + "\n" + ours,
        "An empty line between signatures: the first one is text, and ours does not cover it.",
        WRONG,
        "first-match",
    )
    case("form-text-line-feed", TEXT[:-1] + "\n" + ours, "A text without its last LF.", BAD, flag)
    case("form-tab", signed("a\tb\n"), "A tab in the text.", BAD, "control-characters")
    case("form-nul", signed("a\x00b\n"), "A NUL in the text.", BAD, "control-characters")
    case(
        "form-latin1",
        ("\u00c4" + TEXT + "\n" + ours).encode("utf-8").replace(b"\xc3\x84", b"\xc4"),
        "Not UTF-8.",
        BAD,
        "utf-8",
    )
    case("form-nothing", "", "No bytes.", BAD, "truncation")
    encoded = kit.b64(key_id + signature)
    last = encoded[-2]
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    spare = encoded[:-2] + letters[letters.index(last) + 1] + "="
    case(
        "form-spare-bits",
        TEXT + "\n" + ours.replace(encoded, spare),
        "Spare bits of base64 that are not zero.",
        "base64.malformed",
        "base64 spare-bits",
    )
    case(
        "form-unpadded",
        TEXT + "\n" + ours.replace(encoded, encoded.rstrip("=")),
        "No padding.",
        "base64.malformed",
        "base64",
    )
    case(
        "form-url-alphabet",
        TEXT + "\n" + ours.replace(encoded, "-_" + encoded[2:]),
        "The alphabet for URLs.",
        "base64.malformed",
        "base64",
    )
    case(
        "form-id-only", TEXT + "\n" + kit.signature_line(NAME, key_id, b""), "A key id and no signature.", BAD, "length"
    )
    case(
        "form-63",
        TEXT + "\n" + kit.signature_line(NAME, key_id, signature[:-1]),
        "A signature of 63 bytes.",
        WRONG,
        "length",
    )
    case(
        "form-65",
        TEXT + "\n" + kit.signature_line(NAME, key_id, signature + b"\0"),
        "A signature of 65 bytes.",
        WRONG,
        "length",
    )
    case("form-name-plus", TEXT + "\n" + ours.replace(NAME, "log+example"), "+ in a name.", BAD, flag)
    case(
        "form-name-space",
        TEXT + "\n" + ours.replace(NAME, "log\u00a0example"),
        "A space of Unicode in a name.",
        BAD,
        flag,
    )
    stranger = kit.signature_line("s.example", b"\1\2\3\4", b"\5")
    case("form-100-lines", TEXT + "\n" + stranger * 99 + ours, "100 lines.")
    case("form-101-lines", TEXT + "\n" + stranger * 100 + ours, "101 lines.", "note.too_large", "limits")


def _note_keys(out: File) -> None:
    bad = "note.key_malformed"

    def key(
        id_: str, text: str, comment: str, code: str | None = None, flags: str = "", exit_: int | None = None
    ) -> None:
        out.case("note.key", id_, comment, {"text": text}, code=code, flags=flags, exit_=exit_)

    good = kit.vkey(NAME, kit.LOG)
    key("vkey", good, "A key in text.")
    key("vkey-witness", kit.vkey("witness.example", kit.WITNESS, 4), "A key that cosigns.")
    key(
        "vkey-id",
        good.replace(kit.note_key_id(NAME, kit.LOG.public).hex(), "00000000"),
        "A key id that is not that of name and key.",
        bad,
        "key-id",
    )
    key("vkey-name", good.replace("one", "two"), "The key id of another name.", bad, "key-id")
    key(
        "vkey-upper",
        good.replace(kit.note_key_id(NAME, kit.LOG.public).hex(), kit.note_key_id(NAME, kit.LOG.public).hex().upper()),
        "A key id in upper case.",
        bad,
        "case-folding",
    )
    key("vkey-space", good.replace("log.", "log ."), "A space in the name.", bad, "lax-lines")
    key("vkey-empty-name", "+" + good.partition("+")[2], "An empty name.", bad, "length")
    key("vkey-line-feed", good + "\n", "A line feed behind.", bad, "anchors")
    short = bytes([1]) + kit.LOG.public[:-1]
    key("vkey-31", _raw_vkey(short), "A key of 31 bytes.", bad, "length")
    key(
        "vkey-type",
        _raw_vkey(bytes([2]) + kit.LOG.public),
        "A type that this version does not know.",
        "note.unknown_type",
        "unknown-format",
        3,
    )
    key("vkey-key-id", kit.LOG.id, "A key id of receipts is another text.", bad, "prefix")


def _raw_vkey(raw: bytes) -> str:
    return f"{NAME}+{kit.sha(NAME.encode() + bytes([10]) + raw)[:4].hex()}+{kit.b64(raw)}"


def heads() -> File:
    out = File(
        "checkpoints",
        ("docs/spec/heads.md",),
        "leading zeros, extension lines, other origins, heads signed by another key",
    )
    _checkpoints(out)
    _heads(out)
    return out


def _checkpoints(out: File) -> None:
    bad = "head.malformed"
    origin, root = kit.ORIGIN, kit.sha(b"root")

    def case(id_: str, text: str, comment: str, code: str | None = None, flags: str = "", value=None) -> None:
        out.case("checkpoint", id_, comment, {"text": text}, code=code, flags=flags, value=value)

    def size(id_: str, given: int | str, comment: str, code: str | None = None, flags: str = "") -> None:
        value = None if code else {"origin": origin, "size": int(given), "root": root.hex()}
        case(id_, kit.checkpoint(origin, given, root), comment, code, flags, value)

    size("size", 6, "A checkpoint.")
    size("size-0", 0, "A size of zero, as a checkpoint.")
    size("size-max", 2**63 - 1, "The largest size.")
    size("size-max-plus-1", 2**63, "One more.", bad, "range")
    size("size-leading-zero", "06", "A leading zero.", bad, "leading-zero")
    size("size-00", "00", "Zero twice.", bad, "leading-zero")
    size("size-plus", "+6", "A plus sign.", bad, "numbers")
    size("size-minus", "-6", "A minus sign.", bad, "numbers")
    size("size-space", " 6", "A space.", bad, "lax-whitespace")
    size("size-underscore", "1_0", "An underscore, which Python's int takes.", bad, "numbers")
    size("size-arabic", "\u0666", "An Arabic digit, which Python's int takes.", bad, "unicode-digits")
    size("size-hex", "0x6", "Hexadecimal.", bad, "numbers")
    size("size-empty", "", "No size.", bad, "numbers")
    good = kit.checkpoint(origin, 6, root)
    encoded = kit.b64(root)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    spare = encoded[:-2] + letters[letters.index(encoded[-2]) + 1] + "="
    case("root-31", kit.checkpoint(origin, 6, root[:-1]), "A root of 31 bytes.", bad, "length")
    case("root-33", kit.checkpoint(origin, 6, root + b"\0"), "A root of 33 bytes.", bad, "length")
    case(
        "root-spare-bits",
        good.replace(encoded, spare),
        "Spare bits of base64 that are not zero.",
        "base64.malformed",
        "base64 spare-bits",
    )
    case("root-unpadded", good.replace("=", ""), "No padding.", bad, "base64")
    case("root-hex", good.replace(encoded, root.hex()), "A root in hexadecimal.", bad, "base64")
    case("root-missing", f"{origin}\n6\n", "No root.", bad, "truncation")
    case("origin-empty", good.replace(origin, ""), "No origin.", bad, "length")
    case("extension", good + "extension 1\n", "An extension line.", "head.extension", "extension")
    case("empty-line", good + "\n", "An empty line behind.", bad, "lax-lines")
    case("line-feed", good[:-1], "The last LF missing.", bad, "truncation")
    case("carriage-return", good.replace("\n", "\r\n"), "CR LF.", bad, "line-endings")


def _heads(out: File) -> None:
    origin = kit.ORIGIN
    root = kit.root([kit.leaf(found) for found in ENTRIES[:6]])
    text = kit.checkpoint(origin, 6, root)
    good = kit.head_note(origin, 6, root, kit.LOG)
    value = {"origin": origin, "size": 6, "root": root.hex()}

    def case(id_: str, note: str, comment: str, code: str | None = None, flags: str = "", given=None) -> None:
        out.case("head", f"head-{id_}", comment, {"text": note, "origin": origin, "log_key": kit.LOG.id}, code=code, flags=flags,
                 value=(given or value) if code is None else None)  # fmt: skip

    case("signed", good, "A head signed by the log key.")
    stranger = kit.note_line(text, "mirror.example", kit.OTHER_LOG)
    case(
        "stranger-first",
        text + "\n" + stranger + good.partition("\n\n")[2],
        "A line of an unknown key first.",
        flags="first-signature",
    )
    case("stranger-only", text + "\n" + stranger, "Only that line.", "note.unsigned", "first-signature")
    case(
        "other-key",
        kit.head_note(origin, 6, root, kit.OTHER_LOG),
        "Our origin's name, another key.",
        "note.unsigned",
        "key-id",
    )
    case(
        "both-keys",
        kit.head_note(origin, 6, root, kit.OTHER_LOG, kit.LOG),
        "Two keys of one name.",
        flags="first-signature key-id",
    )
    case(
        "issuer-key",
        kit.head_note(origin, 6, root, kit.ISSUER),
        "The issuer's key signs no heads.",
        "note.unsigned",
        "key-role",
    )
    case(
        "cosigned",
        good + kit.cosignature_line(text, "witness.example", kit.WITNESS, 1796030100),
        "A cosignature beside.",
        flags="first-signature",
    )
    case(
        "size-bit",
        good.replace("\n6\n", "\n7\n"),
        "Another size under the same signature.",
        "note.bad_signature",
        "bit-flip size",
    )
    case(
        "root-bit",
        good.replace(kit.b64(root), kit.b64(kit.flip(root))),
        "Another root under the same signature.",
        "note.bad_signature",
        "bit-flip",
    )
    other = kit.checkpoint("ledger.example/other", 6, root)
    case(
        "origin-in-text",
        other + "\n" + kit.note_line(other, origin, kit.LOG),
        "The head of another origin, signed under our name.",
        "head.origin",
        "origin",
    )
    case(
        "origin",
        kit.head_note("ledger.example/other", 6, root, kit.LOG),
        "The head of another origin, signed under its own name.",
        "note.unsigned",
        "origin",
    )
    case(
        "extension",
        kit.head_note(origin, 6, root, kit.LOG, extensions=("more",)),
        "A signed extension line.",
        "head.extension",
        "extension",
    )
    case(
        "leading-zero",
        kit.head_note(origin, "06", root, kit.LOG),
        "A signed leading zero.",
        "head.malformed",
        "leading-zero",
    )
    empty = kit.sha(b"")
    case(
        "empty",
        kit.head_note(origin, 0, empty, kit.LOG),
        "A size of zero has the root of nothing.",
        given={"origin": origin, "size": 0, "root": empty.hex()},
    )
    case(
        "empty-root",
        kit.head_note(origin, 0, root, kit.LOG),
        "A size of zero with another root.",
        "head.empty_root",
        "empty",
    )
