"""Vectors of digests, entries, lines, key ids, points, signatures and base64."""

from __future__ import annotations

from vectors.makers import kit
from vectors.makers.case import File, bytes_input

HEX = kit.sha(b"").hex()


def digests() -> File:
    out = File("digests", ("docs/spec/digests.md",), "folded case, stray characters, digests of the wrong bytes")
    bad = "digest.malformed"

    def read(id_: str, text: str, comment: str, code: str | None = None, flags: str = "") -> None:
        out.case("digest", id_, comment, {"text": text}, code=code, flags=flags)

    read("digest", f"sha256:{HEX}", "A digest.")
    read("digest-zeros", kit.ZERO, "What stands where nothing came before.")
    read("digest-upper", f"sha256:{HEX.upper()}", "Upper case.", bad, "case-folding")
    read(
        "digest-one-upper", f"sha256:{HEX[:-1].replace('b', 'B', 1)}5", "One digit in upper case.", bad, "case-folding"
    )
    read("digest-63", f"sha256:{HEX[:-1]}", "63 digits.", bad, "length")
    read("digest-65", f"sha256:{HEX}0", "65 digits.", bad, "length")
    read("digest-bare", HEX, "No prefix.", bad, "prefix")
    read("digest-prefix-upper", f"SHA256:{HEX}", "The prefix in upper case.", bad, "prefix case-folding")
    read("digest-prefix-dash", f"sha-256:{HEX}", "Another spelling of the prefix.", bad, "prefix")
    read("digest-sha512", f"sha512:{HEX}", "Another algorithm.", bad, "prefix")
    read(
        "digest-line-feed",
        f"sha256:{HEX}\n",
        "A line feed behind, which `$` of many regular expressions takes.",
        bad,
        "anchors",
    )
    read("digest-space", f" sha256:{HEX}", "A space before.", bad, "anchors")
    read("digest-space-inside", f"sha256: {HEX[:-1]}", "A space inside, which bytes.fromhex takes.", bad, "lax-hex")
    read("digest-pairs", f"sha256:{HEX[:2]} {HEX[3:]}", "A space for a digit.", bad, "lax-hex")
    read("digest-full-width", f"sha256:{HEX[:-1]}\uff15", "A full-width digit.", bad, "unicode-digits")
    read("digest-arabic", f"sha256:{HEX[:-1]}\u0665", "An Arabic digit, which `\\d` takes.", bad, "unicode-digits")
    read("digest-g", f"sha256:{HEX[:-1]}g", "A letter that is no digit.", bad, "lax-hex")
    read("digest-path", f"sha256:{'../' * 21}e", "A path.", bad, "path")
    read("digest-nothing", "", "Nothing.", bad, "length")

    def of(id_: str, data: bytes, comment: str, flags: str = "") -> None:
        out.case("digest.of", id_, comment, bytes_input(data), value=kit.digest(data), flags=flags)

    of("of-nothing", b"", "No bytes.")
    of("of-abc", b"abc", "FIPS 180-4, example 1.")
    of("of-binary", bytes(range(256)), "Every byte once.")
    of("of-receipt", b'{"a":1}', "The receipt id is the digest of the payload and of nothing else.", "receipt-id")
    of("of-receipt-line", b'{"a":1}\n', "With a line feed it is another.", "receipt-id")
    return out


def entries() -> File:
    out = File(
        "entries",
        ("docs/spec/entries.md", "docs/spec/journal.md"),
        "lax layout, leading zeros, days that do not exist, line endings",
    )
    bad = "entry.malformed"
    members = {
        "envelope": kit.digest(b"envelope"), "index": 7, "keyring": 0, "previous": kit.digest(b"previous"),
        "receipt": kit.digest(b"receipt"), "recorded_at": "2026-11-30T09:15:03.123Z",
    }  # fmt: skip
    good = kit.entry(**members)

    def read(
        id_: str, data: bytes, comment: str, code: str | None = None, flags: str = "", exit_: int | None = None
    ) -> None:
        out.case("entry", id_, comment, bytes_input(data), code=code, flags=flags, exit_=exit_)

    def change(
        id_: str, comment: str, code: str | None = None, flags: str = "", exit_: int | None = None, **changed
    ) -> None:
        read(id_, kit.entry(**{**members, **changed}), comment, code, flags, exit_)

    read("entry", good, "An entry.")
    change("entry-0", "Entry 0 names zeros.", index=0, previous=kit.ZERO)
    change("index-max", "The largest index, 2^53-1.", index=2**53 - 1)
    change("index-max-plus-1", "2^53.", bad, "range", index=2**53)
    change("index-17-digits", "17 digits.", bad, "range", index=10**16)
    change("index-leading-zero", "A leading zero.", bad, "leading-zero", index="07")
    change("index-00", "Zero twice.", bad, "leading-zero", index="00")
    change("index-minus", "A negative index.", bad, "range", index=-1)
    change("index-minus-zero", "Minus zero.", bad, "minus-zero", index="-0")
    change("index-fraction", "A fraction.", bad, "numbers", index="7.0")
    change("index-string", "A string.", bad, "types", index='"7"')
    change("index-arabic", "An Arabic digit.", bad, "unicode-digits", index="\u0667")
    change("keyring-leading-zero", "A leading zero.", bad, "leading-zero", keyring="00")
    change("keyring-max-plus-1", "2^53.", bad, "range", keyring=2**53)
    change(
        "digest-upper",
        "A digest in upper case.",
        bad,
        "case-folding",
        receipt="sha256:" + kit.sha(b"receipt").hex().upper(),
    )
    change("digest-short", "A digest of 63 digits.", bad, "length", previous=kit.ZERO[:-1])
    change("time-leap-day", "A day of a leap year.", recorded_at="2028-02-29T00:00:00.000Z")
    change(
        "time-no-leap-day",
        "The same day of a year without it.",
        bad,
        "calendar",
        recorded_at="2027-02-29T00:00:00.000Z",
    )
    change("time-1900", "1900 was no leap year.", bad, "calendar", recorded_at="1900-02-29T00:00:00.000Z")
    change("time-2000", "2000 was one.", recorded_at="2000-02-29T00:00:00.000Z")
    change("time-31-june", "June has 30 days.", bad, "calendar", recorded_at="2026-06-31T00:00:00.000Z")
    change("time-24", "Hour 24.", bad, "calendar", recorded_at="2026-11-30T24:00:00.000Z")
    change("time-leap-second", "Second 60.", bad, "calendar", recorded_at="2026-12-31T23:59:60.000Z")
    change("time-microseconds", "Six digits.", bad, "time-form", recorded_at="2026-11-30T09:15:03.123456Z")
    change("time-no-milliseconds", "No digits.", bad, "time-form", recorded_at="2026-11-30T09:15:03Z")
    change("time-offset", "An offset for Z.", bad, "time-form", recorded_at="2026-11-30T09:15:03.123+00:00")
    change("time-lower-z", "z for Z.", bad, "time-form", recorded_at="2026-11-30T09:15:03.123z")
    change("time-space", "A space for T.", bad, "time-form", recorded_at="2026-11-30 09:15:03.123Z")
    change("time-year-0999", "A year before 1000.", bad, "time-form", recorded_at="0999-11-30T09:15:03.123Z")
    change(
        "schema-v2",
        "A later schema is unknown, not malformed.",
        "entry.unknown_schema",
        "unknown-format",
        3,
        schema="receipt-ledger.entry/v2",
    )
    read(
        "order",
        good.replace(b'"index":7,"keyring":0', b'"keyring":0,"index":7'),
        "Two members swapped.",
        bad,
        "sort-order",
    )
    read("space", good.replace(b":7,", b": 7,"), "A space.", bad, "lax-whitespace")
    read("line-feed", good + b"\n", "A line feed behind.", bad, "anchors")
    read("missing", good.replace(b'"keyring":0,', b""), "A member missing.", bad, "members")
    read("more", good[:-1] + b',"witness":1}', "A member more.", bad, "members")
    read("twice", good.replace(b'"index":7,', b'"index":7,"index":7,'), "A member twice.", bad, "duplicate-names")
    read("cut", good[:-1], "The last byte missing.", bad, "truncation")
    _lines(out, good)
    return out


def _lines(out: File, entry: bytes) -> None:
    bad = "line.malformed"
    envelope = kit.envelope(b'{"a":1}')
    line = b'{"entry":' + entry + b',"envelope":' + envelope + b"}"

    def read(check: str, id_: str, data: bytes, comment: str, code: str | None = None, flags: str = "") -> None:
        out.case(check, id_, comment, bytes_input(data), code=code, flags=flags)

    def lines(id_: str, data: bytes, comment: str, code: str | None = None, flags: str = "") -> None:
        read("line.entry", f"line-{id_}", data, comment, code, flags)

    lines("entry", line, "An entry line, without its LF.")
    lines("entry-nested", b'{"entry":' + entry + b',"envelope":' + kit.envelope(b'{"a":{"b":1,"envelope":{"payload":{}}}}') + b"}",
          "A payload that holds what separates entry and envelope: the first one counts.", flags="first-match")  # fmt: skip
    lines("entry-carriage-return", line + b"\r", "CR before the LF.", bad, "line-endings")
    lines(
        "entry-space",
        line.replace(b',"envelope":{"payload"', b', "envelope":{"payload"', 1),
        "A space.",
        bad,
        "lax-whitespace",
    )
    lines("entry-space-behind", line + b" ", "A space behind.", bad, "lax-whitespace")
    lines("entry-order", b'{"envelope":' + envelope + b',"entry":' + entry + b"}", "Envelope first.", bad, "sort-order")
    lines("entry-alone", b'{"entry":' + entry + b"}", "No envelope.", bad, "members")
    lines("empty", b"", "An empty line.", bad, "members")
    lines("comment", b"# note", "A comment.", bad, "members")
    book = kit.Book(label="lines")
    book.header()
    note = book.commit()
    head = kit.head_line(note, kit.ZERO)

    def heads(id_: str, data: bytes, comment: str, code: str | None = None, flags: str = "") -> None:
        read("line.head", f"line-{id_}", data, comment, code, flags)

    heads("head", head, "A head line, without its LF.")
    heads("head-escaped-dash", head.replace("\u2014".encode(), b"\\u2014"), "The dash escaped.", bad, "escapes")
    heads("head-space", head.replace(b',"previous', b', "previous'), "A space.", bad, "lax-whitespace")
    heads("head-carriage-return", head + b"\r", "CR before the LF.", bad, "line-endings")
    heads("head-more", head[:-1] + b',"z":1}', "A member more.", bad, "members")
    heads("head-alone", kit.canonical({"head": note}), "No digest of the head line before.", bad, "members")
    heads(
        "head-digest-upper",
        head.replace(kit.ZERO.encode(), b"sha256:" + b"A" * 64),
        "A digest in upper case.",
        bad,
        "case-folding",
    )
    heads(
        "head-null",
        kit.canonical({"head": note, "previous_head": None}),
        "null for the digest of nothing.",
        bad,
        "types",
    )
    heads(
        "head-twice", head.replace(b',"previous', b',"head":"x","previous'), "A member twice.", bad, "duplicate-names"
    )


def keys() -> File:
    out = File(
        "keys",
        ("docs/spec/envelopes.md", "docs/spec/keys.md"),
        "weak points, malleable signatures, lax base64, unknown algorithms",
    )

    def text(
        check: str,
        id_: str,
        given: str,
        comment: str,
        code: str | None = None,
        flags: str = "",
        exit_: int | None = None,
        value=None,
    ) -> None:
        out.case(check, id_, comment, {"text": given}, code=code, flags=flags, exit_=exit_, value=value)

    digits = kit.ISSUER.public.hex()
    bad = "key.malformed"
    text("key", "key", kit.ISSUER.id, "A key id.")
    text("key", "key-upper", "ed25519:" + digits.upper(), "Upper case.", bad, "case-folding")
    text("key", "key-short", kit.ISSUER.id[:-1], "63 digits.", bad, "length")
    text("key", "key-long", kit.ISSUER.id + "0", "65 digits.", bad, "length")
    text("key", "key-bare", digits, "No algorithm.", bad, "prefix")
    text("key", "key-line-feed", kit.ISSUER.id + "\n", "A line feed behind.", bad, "anchors")
    text("key", "key-prefix-upper", "Ed25519:" + digits, "The algorithm in upper case.", bad, "case-folding")
    text(
        "key",
        "key-unknown",
        "mldsa65:" + digits,
        "An algorithm of later is unknown, not malformed.",
        "key.unknown_algorithm",
        "unknown-format",
        3,
    )
    for key in kit.KEYS:
        text("key.next", f"next-{key.name}", key.id, "The commitment is the digest of the 32 public bytes.", value=key.commitment,
             flags="commitment")  # fmt: skip
    text(
        "key.next",
        "next-unknown",
        "mldsa65:" + digits,
        "Of an unknown algorithm there is none.",
        "key.unknown_algorithm",
        "unknown-format",
        3,
    )
    _points(text)
    _base64(text)
    _signatures(out)
    return out


def _points(text) -> None:
    text("key.pin", "pin", kit.ISSUER.id, "A key that may be pinned.")

    def point(id_: str, number: int, sign: int, comment: str, code: str, flags: str) -> None:
        encoded = (number | sign << 255).to_bytes(32, "little")
        text("key.pin", id_, "ed25519:" + encoded.hex(), comment, code, flags)

    low, wide = "key.low_order", "key.not_canonical"
    order_8 = int.from_bytes(
        bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
    )
    for sign in (0, 1):
        suffix = "-sign" if sign else ""
        word = ", sign bit set" if sign else ""
        point(f"pin-order-1{suffix}", 1, sign, f"The neutral point{word}.", low, "low-order")
        point(f"pin-order-2{suffix}", kit.FIELD - 1, sign, f"The point of order 2{word}.", low, "low-order")
        point(f"pin-order-4{suffix}", 0, sign, f"A point of order 4{word}.", low, "low-order")
        point(f"pin-order-8{suffix}", order_8, sign, f"A point of order 8{word}.", low, "low-order")
        point(
            f"pin-order-8-other{suffix}", kit.FIELD - order_8, sign, f"The other y of order 8{word}.", low, "low-order"
        )
        point(f"pin-wide-0{suffix}", kit.FIELD, sign, f"Zero written as p{word}.", wide, "non-canonical-point")
        point(f"pin-wide-1{suffix}", kit.FIELD + 1, sign, f"One written as p+1{word}.", wide, "non-canonical-point")
        point(f"pin-wide-last{suffix}", 2**255 - 1, sign, f"The largest encoding{word}.", wide, "non-canonical-point")


def _base64(text) -> None:
    bad = "base64.malformed"
    text("base64", "base64", "AAEC/+8=", "Padded standard base64.", value="000102ffef")
    text("base64", "base64-nothing", "", "No bytes.", value="")
    text("base64", "base64-unpadded", "AAEC/+8", "No padding.", bad, "base64")
    text("base64", "base64-overpadded", "AAEC/+8==", "Padding too long.", bad, "base64")
    text(
        "base64",
        "base64-spare-bits",
        "AAEC/+9=",
        "Spare bits that are not zero: another text of the same bytes.",
        bad,
        "base64 spare-bits",
    )
    text("base64", "base64-url", "AAEC_-8=", "The alphabet for URLs.", bad, "base64")
    text("base64", "base64-line-feed", "AAEC\n/+8=", "A line break.", bad, "base64")
    text("base64", "base64-line-feed-behind", "AAEC/+8=\n", "A line break behind.", bad, "base64 anchors")
    text("base64", "base64-space", "AAEC /+8=", "A space.", bad, "base64")
    text("base64", "base64-behind", "AAEC/+8=AAAA", "Something behind the padding.", bad, "base64")
    text("base64", "base64-padding-only", "====", "Padding alone.", bad, "base64")


def _signatures(out: File) -> None:
    message = b"a message of the vectors"
    signed = kit.ISSUER.sign(message)
    bad = "signature.invalid"

    def case(id_: str, comment: str, code: str | None = None, flags: str = "", exit_: int | None = None, *, key: str = kit.ISSUER.id,
             signature: bytes = signed, over: bytes = message) -> None:  # fmt: skip
        given = {"key": key, "signature": signature.hex(), "message": over.hex()}
        out.case("signature", id_, comment, given, code=code, flags=flags, exit_=exit_)

    case("signature", "A signature.")
    case("signature-nothing", "Over no bytes.", over=b"", signature=kit.ISSUER.sign(b""))
    case("signature-r-bit", "One bit of R.", bad, "bit-flip", signature=kit.flip(signed, 0))
    case("signature-s-bit", "One bit of S.", bad, "bit-flip", signature=kit.flip(signed, 32))
    case("signature-message-bit", "One bit of the message.", bad, "bit-flip", over=kit.flip(message, 3))
    case("signature-other-key", "Another key.", bad, "key", key=kit.OTHER_ISSUER.id)
    case("signature-63", "63 bytes.", "signature.malformed", "length", signature=signed[:-1])
    case("signature-65", "65 bytes.", "signature.malformed", "length", signature=signed + b"\0")
    case("signature-none", "No bytes.", "signature.malformed", "length", signature=b"")
    case("signature-unknown", "A key of an algorithm of later.", "key.unknown_algorithm", "unknown-format", 3,
         key="mldsa65:" + kit.ISSUER.public.hex())  # fmt: skip
    larger = int.from_bytes(signed[32:], "little") + kit.GROUP_ORDER
    case("signature-malleable", "S plus the group order: a second signature of the same bytes.", bad, "malleability",
         signature=signed[:32] + larger.to_bytes(32, "little"))  # fmt: skip
    neutral = (1).to_bytes(32, "little")
    case("signature-low-order-key", "The neutral point as key and R, S zero: holds for every message where it is let through.", bad,
         "low-order", key="ed25519:" + neutral.hex(), signature=neutral + bytes(32))  # fmt: skip
    case("signature-zeros", "64 zero bytes.", bad, "low-order", signature=bytes(64))
