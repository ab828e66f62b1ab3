"""Canonical JSON, read byte by byte as FORMAT, section 1 states it: one pass, no second writing. The oracle for `decode`.

The text itself is checked: members in order, each string in its one spelling, each number in its one spelling.
"""

from __future__ import annotations

LIMIT = 2**53 - 1
SHORT = {0x08: "b", 0x09: "t", 0x0A: "n", 0x0C: "f", 0x0D: "r", 0x22: '"', 0x5C: "\\"}
LONG = {letter: code for code, letter in SHORT.items()}


class RefusedError(Exception):
    pass


def accepts(data, max_depth=64):
    try:
        read(data, max_depth)
    except RefusedError:
        return False
    return True


def read(data, max_depth=64):
    """The object whose canonical text is `data`."""
    reader = Reader(data, max_depth)
    if reader.peek() != "{":
        raise RefusedError("top level")
    value = reader.value(0)
    if reader.at != len(reader.text):
        raise RefusedError("more follows")
    return value


class Reader:
    def __init__(self, data, max_depth):
        try:
            self.text = data.decode("utf-8", "strict")
        except UnicodeDecodeError:
            raise RefusedError("UTF-8") from None
        self.at = 0
        self.max_depth = max_depth

    def peek(self):
        return self.text[self.at] if self.at < len(self.text) else ""

    def take(self, expected):
        if not self.text.startswith(expected, self.at):
            raise RefusedError(expected)
        self.at += len(expected)

    def value(self, depth):
        first = self.peek()
        if first == "{":
            return self.object(depth + 1)
        if first == "[":
            return self.array(depth + 1)
        if first == '"':
            return self.string()
        for word, meaning in (("true", True), ("false", False), ("null", None)):
            if first == word[0]:
                self.take(word)
                return meaning
        return self.number()

    def object(self, depth):
        if depth > self.max_depth:
            raise RefusedError("depth")
        self.take("{")
        found = {}
        if self.peek() == "}":
            self.take("}")
            return found
        last = None
        while True:
            name = self.string()
            if any(ord(letter) > 0xD7FF for letter in name):
                raise RefusedError("name range")
            # Code point order, which below U+D800 is UTF-16 order; equal names are duplicates.
            if last is not None and [ord(c) for c in name] <= [ord(c) for c in last]:
                raise RefusedError("order")
            last = name
            self.take(":")
            found[name] = self.value(depth)
            if self.peek() == "}":
                self.take("}")
                return found
            self.take(",")

    def array(self, depth):
        if depth > self.max_depth:
            raise RefusedError("depth")
        self.take("[")
        found = []
        if self.peek() == "]":
            self.take("]")
            return found
        while True:
            found.append(self.value(depth))
            if self.peek() == "]":
                self.take("]")
                return found
            self.take(",")

    def string(self):
        self.take('"')
        letters = []
        while True:
            letter = self.peek()
            if letter == "" or ord(letter) < 0x20:
                raise RefusedError("string")
            self.at += 1
            if letter == '"':
                return "".join(letters)
            if letter != "\\":
                letters.append(letter)
                continue
            kind = self.peek()
            self.at += 1
            if kind in LONG:
                letters.append(chr(LONG[kind]))
            elif kind == "u":
                digits = self.text[self.at : self.at + 4]
                if len(digits) != 4 or any(digit not in "0123456789abcdef" for digit in digits):
                    raise RefusedError("escape")
                code = int(digits, 16)
                if code >= 0x20 or code in SHORT:
                    raise RefusedError("needless escape")
                letters.append(chr(code))
                self.at += 4
            else:
                raise RefusedError("escape")

    def number(self):
        start = self.at
        if self.peek() == "-":
            self.at += 1
        digits = ""
        while self.peek() and self.peek() in "0123456789":
            digits += self.peek()
            self.at += 1
        # A fraction or an exponent is left standing and refused as something that does not belong there.
        if digits == "" or (len(digits) > 1 and digits[0] == "0") or self.text[start : self.at] == "-0":
            raise RefusedError("number")
        if len(digits) > 16 or int(digits) > LIMIT:
            raise RefusedError("range")
        return int(self.text[start : self.at])
