"""A notary as its operator runs it and as clients see it: commands, processes, sockets, and a public conversation replayed."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import socket
import subprocess
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from ledger import canonical
from ledger.counterseal import open_counter_seal
from ledger.envelope import parse_envelope
from ledger.keys import print_key_id
from ledger.notarization import parse_notarization
from ledger.note import ED25519, NoteKey, check_note, parse_note, parse_vkey, print_vkey
from ledger.tlogproof import parse_tlog_proof
from tests.reference.ledgers import grant, new_ledger, quick_folder
from tests.reference.people import Person
from tests.reference.submissions import LEDGER, Service, bearer, body, checkpoint_body, serving, witnessed_body


class Operator:
    """Somebody with a home and a notary's folder."""

    def __init__(self, folder: Path) -> None:
        self.home, self.notary = folder / "home", folder / "notary"
        self.home.mkdir(parents=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LEDGER_", "XDG_"))}
        self.environment = {**kept, "HOME": str(self.home), "NO_COLOR": "1"}

    def __call__(self, *words: str, code: int = 0) -> str:
        ran = Person(self.home)(*words)
        assert ran.exit == code, (words, ran)
        assert "Traceback" not in ran.err
        self.said = ran.err
        return ran.out

    def token(self, *options: str) -> str:
        return self("notary", "token", str(self.notary), *options).splitlines()[-1]


@pytest.fixture(scope="module")
def operator(tmp_path_factory):
    made = Operator(tmp_path_factory.mktemp("operator"))
    made("notary", "init", str(made.notary), "--name", "notary.example.org")
    return made


@pytest.fixture(scope="module")
def service(operator):
    with serving(operator.notary, operator.home, "--verbose") as made:
        yield made


@pytest.fixture
def ledger(tmp_path):
    made = new_ledger(tmp_path)
    made.append_many([grant(made) for _ in range(3)])
    return made


def newest(ledger):
    return ledger.reader.at(ledger.head().size - 1).entry.receipt


def test_init_says_what_was_made_and_pins_nothing_but_its_own_ledger(tmp_path):
    operator = Operator(tmp_path)
    told = operator("notary", "init", str(operator.notary))
    assert re.search(r"^notary    notary\.invalid/[a-z2-7]{26}$", told, re.MULTILINE)
    assert "-----BEGIN PUBLIC KEY-----" in told
    assert "PRIVATE" not in told
    pins = json.loads(operator("trust", "list", "--json"))["pins"]
    assert {each["role"] for each in pins} == {"origin", "issuer"}
    assert "ok" in operator("-L", str(operator.notary / "ledger"), "verify")
    assert [path.name for path in operator.notary.rglob("*.pem")] == []
    operator("notary", "init", str(operator.notary), code=2)
    operator("notary", "init", str(tmp_path / "other"), "--name", "two words", code=2)
    assert not (tmp_path / "other").exists()
    operator("notary", "serve", str(tmp_path / "other"), code=2)


def test_a_run_is_sealed_over_the_network_and_checked_elsewhere_without_it(operator, service, ledger, tmp_path):
    token = operator.token("--scope", "notarize", "--scope", "admit")
    with service.client() as client:
        answer = client.post("/v1/receipts/notarize", content=body(ledger, newest(ledger)), headers=bearer(token))
        assert answer.status_code == 200
        keys = client.get("/key").json()
    found = parse_notarization(answer.content)
    (tmp_path / "seal.json").write_bytes(found.counter_seal)
    (tmp_path / "key.pem").write_text(keys["seal"]["pem"])
    (tmp_path / "record.tlog-proof").write_bytes(found.tlog_proof)
    elsewhere = Operator(tmp_path / "elsewhere")
    command = [
        "unshare", "-rn", LEDGER, "verify", "--notary", str(tmp_path / "seal.json"), "--notary-key", str(tmp_path / "key.pem"),
    ]  # fmt: skip
    if subprocess.run(["unshare", "-rn", "true"], check=False, capture_output=True).returncode:
        command = command[2:]  # no namespaces here: the command asks for no network all the same
    checked = subprocess.run(command, env=elsewhere.environment, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    document = found.counter_seal
    for at in (20, len(document) // 2, len(document) - 20):
        (tmp_path / "seal.json").write_bytes(document[:at] + bytes([document[at] ^ 1]) + document[at + 1 :])
        changed = subprocess.run(command, env=elsewhere.environment, capture_output=True, check=False)
        assert changed.returncode != 0, at
    # The notary's operator finds the record where the proof says that it is.
    proof = parse_tlog_proof(found.tlog_proof)
    entries = operator("-L", str(operator.notary / "ledger"), "log", "--entries", "--json")
    assert json.loads(entries)[proof.index]["receipt"] == parse_envelope(found.record).receipt_id
    assert operator("-L", str(operator.notary / "ledger"), "verify")


def test_a_published_conversation_with_a_witness_has_the_same_answers_here(operator, service, shared):
    vector = json.loads((shared / "notes/litewitness-conversation.json").read_text())
    key = bytes.fromhex(vector["log_public_key_hex"])
    origin = vector["requests"][0]["origin"]
    operator("notary", "admit", str(operator.notary), origin, print_vkey(NoteKey(origin, ED25519, key)))
    operator("notary", "admit", str(operator.notary), origin, print_key_id(key))
    cosigner = parse_vkey(json.loads(canonical.encode(httpx.get(f"{service.url}/key").json()))["cosigner"]["vkey"])
    statuses = []
    with service.client() as client:
        for each in vector["requests"]:
            text = f"{each['origin']}\n{each['size']}\n{each['root']}\n"
            note = f"{text}\n\u2014 {each['origin']} {each['sig_b64']}\n".encode()
            proof = tuple(base64.b64decode(line) for line in each["proof"])
            answer = client.post("/add-checkpoint", content=checkpoint_body(note, old=each["old"], proof=proof))
            statuses.append(answer.status_code)
            # The vector notes itself that an unknown log is 404 by the specification.
            expected = 404 if "spec: 404" in each["expect"] else each["status"]
            assert answer.status_code == expected, each
            if expected == 409:
                assert answer.text == each["expect"]
                assert answer.headers["content-type"] == "text/x.tlog.size"
            if expected == 200:
                check_note(parse_note(f"{text}\n{answer.text}".encode()), (cosigner,))
        monitored = client.get(f"/{hashlib.sha256(origin.encode()).hexdigest()}/checkpoint")
    assert statuses == [200, 403, 404, 422, 422, 200, 409, 200, 409]
    assert monitored.text.startswith(f"{origin}\n{vector['final_size']}\n")
    signed = parse_note(monitored.content)
    assert len(check_note(signed, (cosigner, NoteKey(origin, ED25519, key)))) == 2


def test_an_origin_is_admitted_once_under_one_key(operator, service, ledger, tmp_path):
    folder = str(operator.notary)
    assert "witness" not in operator("notary", "admit", folder, ledger.origin, ledger.header.log_key)
    other = new_ledger(tmp_path / "other")
    operator("notary", "admit", folder, ledger.origin, other.header.log_key, code=2)
    operator("notary", "admit", folder, "example.org/x", "ed25519:" + "00" * 32, code=2)
    with service.client() as client:
        assert client.post("/add-checkpoint", content=witnessed_body(other)).status_code == 404
        assert client.post("/add-checkpoint", content=witnessed_body(ledger)).status_code == 200


def test_tokens_are_shown_once_and_forgotten_on_demand(operator, service, ledger):
    narrow = operator.token("--scope", "notarize", "--scope", "admit", "--origin", "example.org/other")
    data = body(ledger, newest(ledger))
    with service.client() as client:
        answer = client.post("/v1/receipts/notarize", content=data, headers=bearer(narrow))
        assert (answer.status_code, answer.json()["code"]) == (403, "token.origin")
        good = operator.token()
        assert client.post("/v1/receipts/notarize", content=data, headers=bearer(good)).status_code == 200
        listed = json.loads(operator("notary", "token", str(operator.notary), "--list", "--json"))
        assert good[4:20] in {each["id"] for each in listed}
        assert good not in json.dumps(listed)
        operator("notary", "token", str(operator.notary), "--revoke", good[4:20])
        assert client.post("/v1/receipts/notarize", content=data, headers=bearer(good)).status_code == 401
    operator("notary", "token", str(operator.notary), "--revoke", good[4:20], code=2)


def test_fifty_at_once_have_a_seal_each_and_the_same_submission_the_same(operator, service, tmp_path):
    token = operator.token()
    with quick_folder(tmp_path) as folder:
        submit_at_once(service, token, folder)


def submit_at_once(service, token, tmp_path):
    ledgers = [new_ledger(tmp_path / str(number)) for number in range(25)]
    for each in ledgers:
        each.append(grant(each))
    bodies = [body(each, newest(each)) for each in ledgers] * 2
    answers: list[httpx.Response | None] = [None] * len(bodies)

    def submit(number: int) -> None:
        with service.client() as client:
            answers[number] = client.post("/v1/receipts/notarize", content=bodies[number], headers=bearer(token))

    threads = [threading.Thread(target=submit, args=(number,)) for number in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seals = []
    for answer in answers:
        assert answer is not None
        assert answer.status_code == 200, answer.text
        seals.append(parse_notarization(answer.content).counter_seal)
    assert seals[:25] == seals[25:]
    assert len(set(seals)) == 25
    assert {open_counter_seal(each)[0].origin for each in seals} == {each.origin for each in ledgers}


def test_plain_http_is_for_loopback_or_for_whoever_says_so(operator, tmp_path):
    other = Operator(tmp_path)
    other("notary", "init", str(other.notary))
    other("notary", "serve", str(other.notary), "--host", "0.0.0.0", "--port", "0", code=2)
    assert "would show tokens" in other.said
    with serving(other.notary, other.home, "--host", "0.0.0.0", "--plain-http") as service:
        assert httpx.get(service.url.replace("0.0.0.0", "127.0.0.1") + "/health").status_code == 200


def test_one_service_a_folder_and_one_a_port(operator, service, tmp_path):
    operator("notary", "serve", str(operator.notary), "--port", "0", code=2)
    assert "another service runs" in operator.said
    other = Operator(tmp_path)
    other("notary", "init", str(other.notary))
    port = service.url.rpartition(":")[2]
    other("notary", "serve", str(other.notary), "--port", port, code=2)
    assert "Address already in use" in other.said


def test_it_speaks_tls_with_certificate_files(tmp_path):
    import ssl

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
    from cryptography.x509.oid import NameOID

    key = generate_private_key(SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    begins = datetime.now(UTC) - timedelta(days=1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begins)
        .not_valid_after(begins + timedelta(days=3))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, private = tmp_path / "certificate.pem", tmp_path / "private.pem"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    operator = Operator(tmp_path / "operator")
    operator("notary", "init", str(operator.notary))
    options = ("--host", "localhost", "--certificate", str(pem), "--certificate-key", str(private))
    with serving(operator.notary, operator.home, *options) as service:
        assert service.url.startswith("https://localhost:")
        context = ssl.create_default_context(cafile=str(pem))
        assert httpx.get(f"{service.url}/health", verify=context).status_code == 200
        with pytest.raises(httpx.TransportError):
            httpx.get(service.url.replace("https", "http") + "/health")


def test_a_signal_ends_it_in_good_order_and_its_log_names_nobody(tmp_path, ledger):
    operator = Operator(tmp_path / "operator")
    operator("notary", "init", str(operator.notary))
    token = operator.token()
    service = Service(operator.notary, operator.home, "--verbose")
    with service.client() as client:
        for path in ("/key", f"/r/{newest(ledger)}"):
            client.get(path)
        client.post("/v1/receipts/notarize", content=body(ledger, newest(ledger)), headers=bearer(token))
    said = service.stop()
    assert "POST /v1/receipts/notarize 200" in said
    assert "GET /r/{digest} 404" in said
    for secret in (token[4:20], ledger.origin, newest(ledger)[7:], "127.0.0.1"):
        assert secret not in said
    assert "Traceback" not in said
    again = Service(operator.notary, operator.home)
    assert again.stop() == ""


def test_what_is_no_http_is_refused_and_the_service_goes_on(service):
    host, _, port = service.url.removeprefix("http://").partition(":")
    for sent in (
        b"\x00\xff\x00\xff\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /add-checkpoint HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /add-checkpoint HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"GET /key HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"GET /key HTTP/1.1\r\nHost: a\r\n",
    ):
        with socket.create_connection((host, int(port)), timeout=10) as raw:
            raw.sendall(sent)
            raw.shutdown(socket.SHUT_WR)
            answer = b""
            while chunk := raw.recv(65536):
                answer += chunk
        assert answer == b"" or answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 404"))
        assert b"Traceback" not in answer
    assert httpx.get(f"{service.url}/health").status_code == 200
