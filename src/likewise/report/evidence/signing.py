"""A signature of evidence.json with Ed25519, which says who made it; `cryptography` does the mathematics.

The file beside it holds the 64 bytes as they are, so that others can check them without this package:
``openssl pkeyutl -verify -rawin -pubin -inkey public.pem -in evidence.json -sigfile evidence.json.sig``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from likewise.core.errors import FormatError, InputError, require
from likewise.core.files import read_file
from likewise.core.text import option

SIGNATURE = "evidence.json.sig"
_MOST_BYTES = 10_000
_HOW = "Make one: openssl genpkey -algorithm ed25519 -out private.pem"


class Signer:
    """A private key from a PEM file (PKCS 8, without a passphrase)."""

    def __init__(self, path: str | Path) -> None:
        keys = _library("primitives.serialization")
        data = read_file(path, owner=option("sign"), remedy=f"{_HOW}.", largest=_MOST_BYTES)
        try:
            self._key = keys.load_pem_private_key(data, password=None)
        except (ValueError, TypeError) as error:  # a passphrase is a TypeError
            raise InputError(
                f"{option('sign')}: {Path(path).name} must be a private key in PEM without a passphrase: {error}. {_HOW}."
            ) from error
        except Exception as error:
            if type(error).__name__ != "UnsupportedAlgorithm":
                raise
            raise InputError(f"{option('sign')}: {Path(path).name}: {error}. {_HOW}.") from error
        if not isinstance(self._key, _library("primitives.asymmetric.ed25519").Ed25519PrivateKey):
            raise InputError(f"{option('sign')}: {Path(path).name} must be a key for Ed25519. {_HOW}.")

    @property
    def public(self) -> str:
        """The public key, 32 bytes in hexadecimal digits."""
        return str(self._key.public_key().public_bytes_raw().hex())

    def sign(self, data: bytes) -> bytes:
        """Return the signature, 64 bytes."""
        return bytes(self._key.sign(data))


def public_key(path: str | Path) -> str:
    """Return the key of a PEM file with a public key, in hexadecimal digits."""
    how = "Get it: openssl pkey -in private.pem -pubout -out public.pem"
    keys = _library("primitives.serialization")
    data = read_file(path, owner=option("verify-key"), remedy=f"{how}.", largest=_MOST_BYTES)
    try:
        found: Any = keys.load_pem_public_key(data)
    except Exception as error:
        if not isinstance(error, ValueError) and type(error).__name__ != "UnsupportedAlgorithm":
            raise
        raise InputError(
            f"{option('verify-key')}: {Path(path).name} must be a public key in PEM. {how}."
        ) from error
    if not isinstance(found, _library("primitives.asymmetric.ed25519").Ed25519PublicKey):
        raise InputError(f"{option('verify-key')}: {Path(path).name} must be a key for Ed25519. {how}.")
    return str(found.public_bytes_raw().hex())


def check_signature(data: bytes, signature: bytes, signer: str) -> None:
    """Raise unless the owner of the public key `signer` signed the data."""
    exceptions, ed25519 = _library("exceptions"), _library("primitives.asymmetric.ed25519")
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(signer)).verify(signature, data)
    except (ValueError, exceptions.InvalidSignature) as error:
        raise FormatError(
            f"{SIGNATURE} is not the signature of this evidence by the key {signer[:64]}."
        ) from error


def _library(part: str) -> Any:
    place = "cryptography." if part == "exceptions" else "cryptography.hazmat."
    return require(place + part, extra="sign", why="Signing evidence")
