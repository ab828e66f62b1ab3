"""Vectors of envelopes and seals."""

from __future__ import annotations

from vectors.makers import kit
from vectors.makers.case import File, bytes_input
from vectors.makers.receipts import receipt

BAD, SEAL = "envelope.malformed", "signature.invalid"


def make() -> File:
    out = File(
        "envelopes",
        ("docs/spec/envelopes.md",),
        "lax layout, two seals, first match, missing pre-authentication encoding",
    )
    payload = kit.canonical(receipt("step"))
    plain, signed = kit.envelope(payload), kit.sealed(payload, kit.ISSUER)
    _layout(out, payload, plain, signed)
    _seals(out, payload, signed)
    return out


def _layout(out: File, payload: bytes, plain: bytes, signed: bytes) -> None:
    def read(id_: str, data: bytes, comment: str, code: str | None = None, flags: str = "") -> None:
        value = None
        if code is None:
            value = {
                "receipt": kit.digest(payload),
                "payload_type": kit.RECEIPT_TYPE,
                "seal": kit.ISSUER.id if data is signed else None,
            }
        out.case("envelope", id_, comment, bytes_input(data), code=code, flags=flags, value=value)

    def types(id_: str, type_: str, comment: str, code: str | None = None) -> None:
        value = None if code else {"receipt": kit.digest(payload), "payload_type": type_, "seal": None}
        out.case(
            "envelope",
            id_,
            comment,
            bytes_input(kit.envelope(payload, type_=type_)),
            code=code,
            value=value,
            flags="payload-type",
        )

    read("plain", plain, "An envelope without a seal.")
    read("sealed", signed, "An envelope with one.")
    nested = b'{"a":{"n":1,"payload_type":"x/y","seals":[]},"z":1}'
    out.case("envelope", "nested", "A payload that looks like the end of an envelope: the last one counts.",
             bytes_input(kit.envelope(nested)), flags="first-match",
             value={"receipt": kit.digest(nested), "payload_type": kit.RECEIPT_TYPE, "seal": None})  # fmt: skip
    read("space", plain.replace(b',"seals":', b', "seals":'), "A space.", BAD, "lax-whitespace")
    read("line-feed", plain + b"\n", "A line feed behind.", BAD, "anchors")
    read(
        "order",
        b'{"payload_type":"' + kit.RECEIPT_TYPE.encode() + b'","payload":' + payload + b',"seals":[]}',
        "The type first.",
        BAD,
        "sort-order",
    )
    read("no-seals", plain.replace(b',"seals":[]', b""), "No seals member.", BAD, "members")
    read("more", plain[:-1] + b',"z":1}', "A member more.", BAD, "members")
    read("null", plain.replace(b'"seals":[]', b'"seals":null'), "null for no seals.", BAD, "null")
    read(
        "base64-payload",
        b'{"payload":"' + kit.b64(payload).encode() + b'","payloadType":"x","signatures":[]}',
        "A DSSE envelope is another format.",
        BAD,
        "members",
    )
    seal = signed[signed.rfind(b'{"key"') : -2]
    read("two-seals", signed[:-2] + b"," + seal + b"]}", "Two seals.", BAD, "second-seal")
    read(
        "seal-order",
        signed.replace(
            seal,
            b'{"signature":' + seal.partition(b'"signature":')[2][:-1] + b',"key":"' + kit.ISSUER.id.encode() + b'"}',
        ),
        "The signature first.",
        BAD,
        "sort-order",
    )
    read(
        "seal-key-upper",
        signed.replace(seal, seal.replace(kit.ISSUER.public.hex().encode(), kit.ISSUER.public.hex().upper().encode())),
        "A key id in upper case.",
        BAD,
        "case-folding",
    )
    read("seal-more", signed.replace(seal, seal[:-1] + b',"z":1}'), "A member more in the seal.", BAD, "members")
    read(
        "seal-no-key",
        signed.replace(seal, b'{"signature":' + seal.partition(b'"signature":')[2]),
        "A seal without key id.",
        BAD,
        "members",
    )
    read("seal-empty", signed.replace(seal, b"{}"), "An empty seal.", BAD, "members")
    read("seal-null", signed.replace(seal, b"null"), "null for a seal.", BAD, "null")
    read(
        "seal-url-alphabet",
        signed.replace(seal, seal.replace(b"+", b"-").replace(b"/", b"_")),
        "The base64 alphabet for URLs.",
        BAD,
        "base64",
    )
    read(
        "seal-unpadded",
        signed.replace(seal, seal.replace(b"==", b"")),
        "A signature without padding.",
        "base64.malformed",
        "base64",
    )
    start = seal.rfind(b"==") - 1
    spare = bytes([seal[start] + 1])
    read(
        "seal-spare-bits",
        signed.replace(seal, seal[:start] + spare + seal[start + 1 :]),
        "Spare bits of base64 that are not zero.",
        "base64.malformed",
        "base64 spare-bits",
    )
    types("type-other", "application/vnd.other+json", "Another type is well formed.")
    types("type-3", "a/b", "Three characters.")
    types("type-2", "ab", "Two.", BAD)
    types("type-upper", "Application/json", "Upper case.", BAD)
    types("type-parameters", "application/json; a=b", "Parameters.", BAD)
    types("type-255", "t" * 255, "255 characters.")
    types("type-256", "t" * 256, "256.", BAD)


def _seals(out: File, payload: bytes, signed: bytes) -> None:
    def seal(
        id_: str, data: bytes, comment: str, code: str | None = None, flags: str = "", exit_: int | None = None
    ) -> None:
        out.case("seal", f"seal-{id_}", comment, bytes_input(data), code=code, flags=flags, exit_=exit_)

    key, type_ = kit.ISSUER, kit.RECEIPT_TYPE
    over = kit.pae(payload)

    def by(message: bytes, id_: str = key.id) -> bytes:
        return kit.envelope(payload, id_, key.sign(message))

    seal("holds", signed, "A seal over the pre-authentication encoding.")
    umlaut = kit.canonical(receipt("step", name="Pr\u00fcfung"))
    seal("holds-unicode", kit.sealed(umlaut, key), "Lengths are in bytes.", flags="pae-length")
    seal("characters", kit.envelope(umlaut, key.id, key.sign(f"DSSEv1 {len(type_)} {type_} {len(umlaut.decode())} ".encode() + umlaut)),
         "Lengths in characters.", SEAL, "pae-length")  # fmt: skip
    seal("none", kit.envelope(payload), "No seal.", "seal.absent", "skipped-seal")
    seal(
        "payload-bit",
        signed.replace(b'"name":"build","nonce"', b'"name":"cuild","nonce"'),
        "One bit of the payload.",
        SEAL,
        "bit-flip skipped-seal",
    )
    seal(
        "signature-bit",
        kit.envelope(payload, key.id, kit.flip(key.sign(over), 40)),
        "One bit of the signature.",
        SEAL,
        "bit-flip skipped-seal",
    )
    seal(
        "type",
        signed.replace(type_.encode(), b"application/vnd.receipt-ledger.deceipt+json"),
        "The type is signed.",
        SEAL,
        "payload-type",
    )
    seal("other-key", kit.envelope(payload, kit.OTHER_ISSUER.id, key.sign(over)), "Another key id.", SEAL, "key")
    seal("bare", by(payload), "Over the payload alone.", SEAL, "no-pae")
    seal("digest", by(kit.sha(payload)), "Over the digest of the payload.", SEAL, "no-pae")
    seal("base64", by(kit.pae(kit.b64(payload).encode())), "Over the payload in base64.", SEAL, "no-pae")
    seal("no-version", by(over.replace(b"DSSEv1 ", b"")), "Without the first word.", SEAL, "no-pae")
    seal("line-feed", by(kit.pae(payload + b"\n")), "Over the payload and a line feed.", SEAL, "no-pae")
    larger = int.from_bytes(key.sign(over)[32:], "little") + kit.GROUP_ORDER
    seal(
        "malleable",
        kit.envelope(payload, key.id, key.sign(over)[:32] + larger.to_bytes(32, "little")),
        "S plus the group order.",
        SEAL,
        "malleability",
    )
    neutral = (1).to_bytes(32, "little")
    seal(
        "low-order",
        kit.envelope(payload, "ed25519:" + neutral.hex(), neutral + bytes(32)),
        "A key that every signature of this form holds for.",
        SEAL,
        "low-order",
    )
    seal("short", kit.envelope(payload, key.id, key.sign(over)[:63]), "63 bytes.", "signature.malformed", "length")
    seal(
        "unknown",
        kit.envelope(payload, "mldsa65:" + key.public.hex(), key.sign(over)),
        "A key of an algorithm of later.",
        "key.unknown_algorithm",
        "unknown-format",
        3,
    )
