import os
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from emceepee.backends.http1.tls_contexts import BadTlsFile, TlsContexts, TlsSettings
from support.system.certificates import Authority, split


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def names_in(context: ssl.SSLContext) -> set[str]:
    """Return the names of the CAs: the last part of each name."""
    subjects: list[Any] = [found["subject"] for found in context.get_ca_certs()]
    return {subject[-1][0][1] for subject in subjects}


def problem(settings: TlsSettings, bundle: Path | None = None) -> tuple[str, str]:
    with pytest.raises(BadTlsFile) as refused:
        TlsContexts(bundle).of(settings)
    return refused.value.setting, str(refused.value)


def test_without_settings_a_ca_bundle_is_trusted_in_addition_to_the_system_store(authority: Authority) -> None:
    usual, more = TlsContexts().of(None), TlsContexts(authority.file).of(None)
    assert names_in(more) == names_in(usual) | {"a private CA"}
    assert (more.verify_mode, more.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_a_server_with_its_own_ca_trusts_no_other_ca(authority: Authority, tmp_path: Path) -> None:
    bundle = Authority(tmp_path / "bundle", "another CA").file
    context = TlsContexts(bundle).of(TlsSettings(ca=str(authority.file)))
    assert names_in(context) == {"a private CA"}
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_certificate_checks_are_skipped_only_for_a_server_marked_insecure() -> None:
    contexts = TlsContexts()
    assert contexts.of(TlsSettings(insecure=True)).verify_mode == ssl.CERT_NONE
    assert contexts.of(TlsSettings()).verify_mode == ssl.CERT_REQUIRED


def test_a_tls_context_is_cached_until_its_files_change(authority: Authority, tmp_path: Path) -> None:
    contexts, settings = TlsContexts(), TlsSettings(ca=str(authority.file))
    first = contexts.of(settings)
    assert contexts.of(settings) is first
    authority.file.write_bytes(Authority(tmp_path / "new", "the next CA").file.read_bytes())
    os.utime(authority.file, ns=(1, 1))
    assert names_in(contexts.of(settings)) == {"the next CA"}


def test_a_tls_context_survives_when_its_files_become_unusable(authority: Authority) -> None:
    contexts, settings = TlsContexts(), TlsSettings(ca=str(authority.file))
    first = contexts.of(settings)
    authority.file.write_text("half of a certificate")
    assert contexts.of(settings) is first
    authority.file.unlink()
    assert contexts.of(settings) is first


def test_a_client_certificate_may_have_its_key_in_the_same_file_or_another(authority: Authority) -> None:
    file = authority.issue("a client")
    certificate, key = split(file)
    TlsContexts().of(TlsSettings(cert=str(file)))
    TlsContexts().of(TlsSettings(cert=str(certificate), key=str(key)))


def test_an_unusable_tls_file_is_named_with_its_expected_content(authority: Authority, tmp_path: Path) -> None:
    certificate, key = split(authority.issue("a client"))
    _, foreign = split(authority.issue("another client"))
    junk, missing = tmp_path / "junk", tmp_path / "missing"
    junk.write_text("junk")
    assert problem(TlsSettings(ca=str(missing))) == ("ca", f"{missing}: No such file or directory")
    assert problem(TlsSettings(), missing) == ("bundle", f"{missing}: No such file or directory")
    setting, words = problem(TlsSettings(ca=str(junk)))
    assert (setting, words.startswith(f"{junk}: expected certificates of CAs in PEM form")) == ("ca", True)
    setting, words = problem(TlsSettings(cert=str(certificate)))
    assert (setting, words.startswith(f"{certificate}: expected a certificate and its key")) == ("cert", True)
    assert problem(TlsSettings(cert=str(certificate), key=str(missing)))[0] == "key"
    assert problem(TlsSettings(cert=str(missing), key=str(key))) == ("cert", f"{missing}: No such file or directory")
    setting, words = problem(TlsSettings(cert=str(certificate), key=str(foreign)))
    assert (setting, words) == ("key", f"{foreign} contains a key that does not match the certificate")


def test_an_encrypted_tls_key_is_rejected_without_asking_for_a_passphrase(authority: Authority) -> None:
    certificate, key = split(authority.issue("a client"))
    loaded = serialization.load_pem_private_key(key.read_bytes(), None)
    key.write_bytes(
        loaded.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"s3cret"),
        )
    )
    setting, words = problem(TlsSettings(cert=str(certificate), key=str(key)))
    assert (setting, "the key is encrypted" in words) == ("key", True)
