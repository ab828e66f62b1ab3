"""Vectors of docs/spec/canonical-json.md: each clause with a text that a round trip alone would pass."""

from __future__ import annotations

from vectors.makers.case import File, bytes_input

JSON, WRONG, BIG, FRACTION = (
    "canonical.not_json", "canonical.not_canonical", "canonical.integer_range", "canonical.fraction",
)  # fmt: skip
TOP, DEEP, RANGE, TWICE = (
    "canonical.top_level",
    "canonical.too_deep",
    "canonical.name_range",
    "canonical.duplicate_name",
)
MAX = 2**53 - 1


def make() -> File:
    out = File(
        "canonical-json",
        ("docs/spec/canonical-json.md",),
        "lax decoders, duplicate names, sort order, numbers, surrogates, escapes, depth",
    )

    def read(id_: str, text: str | bytes, comment: str, code: str | None = None, flags: str = "") -> None:
        data = text.encode() if isinstance(text, str) else text
        out.case("canonical-json", id_, comment, bytes_input(data), code=code, flags=flags)

    _top_level(read)
    _space(read)
    _encoding(read)
    _escapes(read)
    _names(read)
    _numbers(read)
    _depth(read)
    _not_json(read)
    _write(out)
    return out


def _top_level(read) -> None:
    read("top-object", "{}", "The smallest document.")
    read("top-array", "[]", "An array on top.", TOP, "top-level")
    read("top-string", '"a"', "A string on top.", TOP, "top-level")
    read("top-integer", "1", "A number on top.", TOP, "top-level")
    read("top-null", "null", "null on top.", TOP, "top-level")
    read("literals", '{"a":true,"b":false,"c":null}', "The three literals are values.")
    read("literals-python", '{"a":True}', "A literal as Python prints it.", JSON, "lax-parser")
    read("literals-bare", '{"a":tru}', "A literal cut short.", JSON, "lax-parser")


def _space(read) -> None:
    flag = "lax-whitespace"
    read("space-none", '{"a":[1,2]}', "No white space.")
    read("space-after-comma", '{"a":[1, 2]}', "One space in an array.", WRONG, flag)
    read("space-after-colon", '{"a": [1,2]}', "One space after a colon.", WRONG, flag)
    read("space-inside", "{ }", "One space in an empty object.", WRONG, flag)
    read("space-before", " {}", "One space before.", WRONG, flag)
    read("space-behind", "{} ", "One space behind.", WRONG, flag)
    read("space-line-feed", "{}\n", "A file with a last line feed.", WRONG, flag)
    read("space-crlf", "{}\r\n", "A file with a last CR LF.", WRONG, flag)
    read("space-tab", '{\t"a":1}', "A tab.", WRONG, flag)
    read("space-nbsp", '{\u00a0"a":1}', "U+00A0 is not white space of JSON.", JSON, flag)
    read("space-in-string", '{"a":" b "}', "White space in a string is the string's.")


def _encoding(read) -> None:
    flag = "utf-8"
    read("bom", b"\xef\xbb\xbf{}", "A byte order mark.", JSON, "bom")
    read("bom-in-string", '{"a":"\ufeff"}', "U+FEFF in a string is a character like others.")
    read("utf16", '{"a":1}'.encode("utf-16-le"), "UTF-16.", JSON, flag)
    read("utf8-two-bytes", '{"a":"\u00e9"}', "Two bytes.")
    read("utf8-latin1", b'{"a":"\xe9"}', "The same character in Latin-1.", JSON, flag)
    read("utf8-overlong", b'{"a":"\xc0\xaf"}', "An overlong slash.", JSON, f"{flag} overlong")
    read("utf8-overlong-nul", b'{"a":"\xc0\x80"}', "Modified UTF-8's NUL.", JSON, f"{flag} overlong")
    read("utf8-cut", b'{"a":"\xe2\x82"}', "A character cut short.", JSON, flag)
    read("utf8-continuation", b'{"a":"\x80"}', "A continuation byte alone.", JSON, flag)
    read("utf8-surrogate", b'{"a":"\xed\xa0\x80"}', "A surrogate in three bytes.", JSON, f"{flag} surrogate")
    read(
        "utf8-cesu",
        b'{"a":"\xed\xa0\xbd\xed\xb8\x80"}',
        "A pair of surrogates in six bytes.",
        JSON,
        f"{flag} surrogate",
    )
    read("utf8-last", b'{"a":"\xf4\x8f\xbf\xbf"}', "U+10FFFF, the last code point.")
    read("utf8-beyond", b'{"a":"\xf4\x90\x80\x80"}', "One beyond the last code point.", JSON, flag)
    read("utf8-in-name", b'{"\xff":1}', "A byte that is not UTF-8, in a name.", JSON, flag)
    read("noncharacter", '{"a":"\uffff"}', "U+FFFF in a value is valid Unicode.")
    read("not-normalized", '{"a":"e\u0301"}', "Nothing is normalized.", flags="normalization")
    read("normalized", '{"a":"\u00e9"}', "The composed form is another value, and as good.", flags="normalization")


def _escapes(read) -> None:
    flag = "escapes"
    read("escape-quote", '{"a":"\\""}', "The quotation mark is escaped.")
    read("escape-quote-u", '{"a":"\\u0022"}', "The same by its number.", WRONG, flag)
    read("escape-backslash", '{"a":"\\\\"}', "The backslash is escaped.")
    read("escape-slash-raw", '{"a":"/"}', "The slash is not.")
    read("escape-slash", '{"a":"\\/"}', "An escaped slash.", WRONG, flag)
    read("escape-letter", '{"a":"\\u0041"}', "A letter by its number.", WRONG, flag)
    for name, short, number in (
        ("backspace", "b", "0008"), ("tab", "t", "0009"), ("line-feed", "n", "000a"), ("form-feed", "f", "000c"),
        ("return", "r", "000d"),
    ):  # fmt: skip
        read(f"escape-{name}", f'{{"a":"\\{short}"}}', f"U+{number.upper()} has a short escape.")
        read(f"escape-{name}-u", f'{{"a":"\\u{number}"}}', f"U+{number.upper()} by its number.", WRONG, flag)
    read("escape-control", '{"a":"\\u001f"}', "Other controls by their number, in lower case.")
    read("escape-control-upper", '{"a":"\\u001F"}', "The same in upper case.", WRONG, flag)
    read("escape-control-raw", b'{"a":"\x1f"}', "A raw control character.", JSON, "lax-parser")
    read("escape-vertical-tab", '{"a":"\\u000b"}', "U+000B has no short escape.")
    read("escape-vertical-tab-short", '{"a":"\\v"}', "A short escape that JSON has not.", JSON, "lax-parser")
    read("escape-nul", '{"a":"\\u0000"}', "NUL is a character.")
    read("escape-nul-raw", b'{"a":"\x00"}', "A raw NUL.", JSON, "lax-parser")
    read("escape-delete-raw", '{"a":"\x7f"}', "U+007F stands raw.")
    read("escape-delete", '{"a":"\\u007f"}', "U+007F escaped.", WRONG, flag)
    read("escape-separator-raw", '{"a":"\u2028"}', "U+2028 stands raw.", flags="line-separator")
    read("escape-separator", '{"a":"\\u2028"}', "U+2028 escaped, as for JavaScript.", WRONG, flag)
    read("escape-html-raw", '{"a":"<&>"}', "What HTML treats specially stands raw.")
    read("escape-html", '{"a":"\\u003c&>"}', "The same escaped, as some encoders do.", WRONG, flag)
    read("escape-ascii-raw", '{"a":"\u00fc"}', "Beyond ASCII stands raw.")
    read("escape-ascii", '{"a":"\\u00fc"}', "The same escaped, as by ensure_ascii.", WRONG, flag)
    read("escape-pair-raw", '{"a":"\U0001f600"}', "Beyond U+FFFF stands raw.")
    read("escape-pair", '{"a":"\\ud83d\\ude00"}', "The same as a pair of escapes.", WRONG, flag)
    read("surrogate-high", '{"a":"\\ud83d"}', "A lone high surrogate.", JSON, "surrogate")
    read("surrogate-low", '{"a":"\\ude00"}', "A lone low surrogate.", JSON, "surrogate")
    read("surrogate-reversed", '{"a":"\\ude00\\ud83d"}', "A pair in the wrong order.", JSON, "surrogate")
    read("surrogate-split", '{"a":"\\ud83dx\\ude00"}', "A pair with a letter between.", JSON, "surrogate")
    read("surrogate-in-name", '{"\\ud83d":1}', "A lone surrogate in a name.", JSON, "surrogate")
    read("escape-half", '{"a":"\\u12"}', "An escape cut short.", JSON, "lax-parser")


def _names(read) -> None:
    order, twice = "sort-order", "duplicate-names"
    read("order-two", '{"a":1,"b":2}', "Sorted.")
    read("order-two-swapped", '{"b":2,"a":1}', "In the order of writing.", WRONG, f"{order} insertion-order")
    read("order-nested", '{"a":[{"b":1,"c":2}]}', "Sorted inside an array.")
    read("order-nested-swapped", '{"a":[{"c":2,"b":1}]}', "Not sorted inside an array.", WRONG, order)
    read("order-case", '{"B":1,"a":2}', "Upper case sorts first.")
    read("order-case-folded", '{"a":2,"B":1}', "Sorted without regard to case.", WRONG, f"{order} case-folding")
    read("order-digits", '{"10":1,"9":2}', "Digits sort as characters.")
    read(
        "order-digits-numeric",
        '{"9":2,"10":1}',
        "Sorted as numbers, as JavaScript does.",
        WRONG,
        f"{order} numeric-names",
    )
    read("order-prefix", '{"a":1,"aa":2}', "A prefix sorts first.")
    read("order-length", '{"aa":1,"b":2}', "Length counts for nothing.")
    read(
        "order-length-first", '{"b":2,"aa":1}', "Sorted by length first, as CBOR does.", WRONG, f"{order} length-first"
    )
    read("order-empty", '{"":1,"a":2}', "The empty name is the smallest.")
    read("order-accent", '{"z":1,"\u00e9":2}', "By code unit, not by alphabet.")
    read("order-accent-locale", '{"\u00e9":2,"z":1}', "By alphabet.", WRONG, f"{order} locale")
    read("order-escaped", '{"\\n":1,"A":2}', "By the name, not by its text: U+000A before A.")
    read(
        "order-escaped-text",
        '{"A":2,"\\n":1}',
        "By the text, where a backslash follows A.",
        WRONG,
        f"{order} escaped-text",
    )
    read("order-underscore", '{"a_":1,"aa":2}', "U+005F before a.")
    read("twice", '{"a":1,"a":2}', "A name twice: readers differ in which they keep.", TWICE, twice)
    read("twice-equal", '{"a":1,"a":1}', "A name twice with one value.", TWICE, twice)
    read("twice-apart", '{"a":1,"b":2,"a":1}', "A name twice, with another between.", TWICE, twice)
    read("twice-nested", '{"a":{"b":1,"b":1}}', "A name twice, further down.", TWICE, twice)
    read("twice-in-array", '{"a":[{"b":1,"b":1}]}', "A name twice, in an array.", TWICE, twice)
    read("twice-escaped", '{"a":1,"\\u0061":1}', "A name twice, once escaped.", TWICE, f"{twice} escapes")
    read("twice-empty", '{"":1,"":1}', "The empty name twice.", TWICE, twice)
    read("once-in-each", '{"a":{"b":1},"c":{"b":1}}', "A name once in each of two objects.")
    read("range-last", '{"\ud7ff":1}', "U+D7FF, the last code point of names.")
    read("range-first-above", '{"\ue000":1}', "U+E000: from here on sort orders part.", RANGE, "name-range")
    read("range-ffff", '{"\uffff":1}', "U+FFFF.", RANGE, "name-range")
    read("range-astral", '{"\U0001f600":1}', "Beyond U+FFFF.", RANGE, "name-range")
    read("range-inside", '{"a\ufb33b":1}', "In the middle of a name.", RANGE, "name-range")
    read("range-nested", '{"a":[{"\ufb33":1}]}', "Further down.", RANGE, "name-range")
    read(
        "range-utf16-order", '{"\U0001f600":1,"\ufb33":2}', "In the order of UTF-16 units.", RANGE,
        "name-range sort-order",
    )  # fmt: skip
    read(
        "range-code-point-order", '{"\ufb33":2,"\U0001f600":1}', "In the order of code points.", RANGE,
        "name-range sort-order",
    )  # fmt: skip
    read("range-value", '{"a":"\U0001f600\ufb33"}', "Values are free of the limit.")


def _numbers(read) -> None:
    flag = "numbers"
    read("integer-zero", '{"a":0}', "Zero.")
    read("integer-minus", '{"a":-1}', "A negative integer.")
    read("integer-max", f'{{"a":{MAX}}}', "2^53-1.")
    read("integer-max-plus-1", f'{{"a":{MAX + 1}}}', "2^53.", BIG, f"{flag} range")
    read("integer-max-plus-2", f'{{"a":{MAX + 2}}}', "2^53+1, which a double cannot hold.", BIG, f"{flag} range")
    read("integer-min", f'{{"a":-{MAX}}}', "-(2^53-1).")
    read("integer-min-minus-1", f'{{"a":-{MAX + 1}}}', "-(2^53).", BIG, f"{flag} range")
    read("integer-2-63", f'{{"a":{2**63}}}', "2^63.", BIG, f"{flag} range")
    read("integer-2-64", f'{{"a":{2**64}}}', "2^64, beyond every machine integer.", BIG, f"{flag} range")
    read("integer-2-68", f'{{"a":{2**68}}}', "2^68, an example of RFC 8785.", BIG, f"{flag} range")
    read("integer-long", '{"a":1' + "0" * 5000 + "}", "5,001 digits.", BIG, f"{flag} range denial-of-service")
    read("minus-zero", '{"a":-0}', "Zero has no sign.", WRONG, f"{flag} minus-zero")
    read("minus-zero-fraction", '{"a":-0.0}', "Nor as a double.", FRACTION, f"{flag} minus-zero")
    read("fraction-zero", '{"a":1.0}', "A whole number as a double prints it.", FRACTION, f"{flag} round-trip-only")
    read("fraction-half", '{"a":0.5}', "A fraction that prints as itself.", FRACTION, f"{flag} round-trip-only")
    read("fraction-small", '{"a":1e-7}', "An exponent that prints as itself.", FRACTION, f"{flag} round-trip-only")
    read("fraction-exponent", '{"a":1e2}', "A whole number with an exponent.", FRACTION, flag)
    read("fraction-exponent-upper", '{"a":1E2}', "The same in upper case.", FRACTION, flag)
    read("fraction-exponent-zero", '{"a":1e0}', "An exponent of zero.", FRACTION, flag)
    read("fraction-large", '{"a":1e400}', "Larger than every double.", FRACTION, f"{flag} infinity")
    read("fraction-in-array", '{"a":[1,2.5]}', "A fraction in an array.", FRACTION, f"{flag} round-trip-only")
    read("fraction-text", '{"a":"0.5"}', "As a string it is a string.")
    read("number-leading-zero", '{"a":01}', "A leading zero.", JSON, f"{flag} lax-parser")
    read("number-plus", '{"a":+1}', "A plus sign.", JSON, f"{flag} lax-parser")
    read("number-no-integer", '{"a":.5}', "Nothing before the point.", JSON, f"{flag} lax-parser")
    read("number-no-fraction", '{"a":1.}', "Nothing behind the point.", JSON, f"{flag} lax-parser")
    read("number-minus", '{"a":-}', "A minus sign alone.", JSON, f"{flag} lax-parser")
    read("number-underscore", '{"a":1_000}', "An underscore, which Python's int takes.", JSON, f"{flag} lax-parser")
    read("number-hex", '{"a":0x10}', "Hexadecimal.", JSON, f"{flag} lax-parser")
    read("number-arabic", '{"a":\u0661}', "An Arabic digit, which Python's int takes.", JSON, f"{flag} lax-parser")
    read("number-nan", '{"a":NaN}', "NaN, which Python reads and writes.", JSON, f"{flag} round-trip-only nan")
    read(
        "number-infinity",
        '{"a":Infinity}',
        "Infinity, which Python reads and writes.",
        JSON,
        f"{flag} round-trip-only nan",
    )
    read("number-minus-infinity", '{"a":-Infinity}', "The same, negative.", JSON, f"{flag} round-trip-only nan")


def _depth(read) -> None:
    flag = "depth"

    def arrays(levels: int) -> str:
        return '{"a":' + "[" * (levels - 1) + "]" * (levels - 1) + "}"

    def objects(levels: int) -> str:
        return '{"a":' * (levels - 1) + "{}" + "}" * (levels - 1)

    read("depth-64", arrays(64), "64 levels.")
    read("depth-65", arrays(65), "65 levels.", DEEP, flag)
    read("depth-objects-64", objects(64), "64 objects.")
    read("depth-objects-65", objects(65), "65 objects.", DEEP, flag)
    read("depth-wide", '{"a":[' + ",".join(["[]"] * 100) + "]}", "A hundred arrays side by side are three levels.")
    read("depth-string", '{"a":"' + "[" * 100 + '"}', "Brackets in a string count for nothing.")
    read("depth-string-escape", '{"a":"\\"' + "[" * 100 + '"}', "Nor do those behind an escaped quotation mark.")
    read(
        "depth-string-backslash",
        '{"a":"\\\\","b":' + arrays(64) + "}",
        "A string that ends in a backslash ends.",
        DEEP,
        flag,
    )
    read(
        "depth-bomb",
        '{"a":' + "[" * 5000,
        "A bomb that ends nowhere; no parser needs to see it.",
        DEEP,
        f"{flag} recursion",
    )
    read("depth-bomb-closed", arrays(2500), "A bomb that is JSON.", DEEP, f"{flag} recursion")
    read("depth-bomb-objects", '{"a":' * 2500, "A bomb of objects.", DEEP, f"{flag} recursion")


def _not_json(read) -> None:
    flag = "lax-parser"
    read("nothing", "", "No bytes.", JSON, flag)
    read("two-documents", "{}{}", "Two documents.", JSON, flag)
    read("behind", "{}x", "Something behind.", JSON, flag)
    read("comma-behind", '{"a":1,}', "A comma behind the last member.", JSON, flag)
    read("comma-behind-array", '{"a":[1,]}', "A comma behind the last item.", JSON, flag)
    read("comma-missing", '{"a":1"b":2}', "A comma missing.", JSON, flag)
    read("quotes-single", "{'a':1}", "Single quotation marks.", JSON, flag)
    read("quotes-none", "{a:1}", "A name without quotation marks.", JSON, flag)
    read("comment", '{"a":1/**/}', "A comment.", JSON, flag)
    read("cut", '{"a":1', "Cut short.", JSON, flag)
    read("cut-string", '{"a":"b', "Cut short in a string.", JSON, flag)
    read("nul-behind", b"{}\x00", "A NUL behind.", JSON, flag)
    read("name-integer", "{1:2}", "A name that is a number.", JSON, flag)


def _write(out: File) -> None:
    def write(
        id_: str, text: str, comment: str, value: str | None = None, code: str | None = None, flags: str = ""
    ) -> None:
        out.case("canonical-json.write", id_, comment, {"text": text}, code=code, value=value, flags=flags)

    write(
        "write-example",
        '{"b": [1, -20, 9007199254740991, true, null], "a": {}, "\\u20ac": "tab\\t quote\\" slash/ \\ud83d\\ude00"}',
        "The example of the page.",
        '{"a":{},"b":[1,-20,9007199254740991,true,null],"\u20ac":"tab\\t quote\\" slash/ \U0001f600"}',
    )
    write(
        "write-escapes",
        '{"a": "\\u0000\\u0008\\u0009\\u000a\\u000b\\u000c\\u000d\\u001f\\u0022\\u005c\\u002f\\u007f\\u2028"}',
        "Every kind of escape.",
        '{"a":"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\\"\\\\/\x7f\u2028"}',
        flags="escapes",
    )
    write(
        "write-order",
        '{"b": 1, "a": 2, "B": 3, "aa": 4, "10": 5, "9": 6, "": 7, "\\n": 8, "\u00e9": 9, "\ud7ff": 10}',
        "Order by code unit.",
        '{"":7,"\\n":8,"10":5,"9":6,"B":3,"a":2,"aa":4,"b":1,"\u00e9":9,"\ud7ff":10}',
        flags="sort-order",
    )
    write(
        "write-not-normalized", '{"a": "e\\u0301"}', "Nothing is normalized.", '{"a":"e\u0301"}', flags="normalization"
    )
    write("write-fraction", '{"a": 1.0}', "A writer converts no double.", code=FRACTION, flags="numbers")
    write("write-range", '{"a": 9007199254740992}', "2^53.", code=BIG, flags="numbers range")
    write("write-name", '{"\\ufb33": 1}', "A name above U+D7FF.", code=RANGE, flags="name-range")
    write("write-top", "[1]", "An array on top.", code=TOP, flags="top-level")
    write("write-deep", '{"a":' + "[" * 64 + "]" * 64 + "}", "65 levels.", code=DEEP, flags="depth")
